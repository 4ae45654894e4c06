//! The one writer of SQLite, with group commit: while one transaction waits for the disk, others queue up, and the next
//! one takes them all. Nobody waits for company: alone, a change is committed at once.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use sea_orm::{DatabaseConnection, SqliteTransactionMode, TransactionOptions, TransactionTrait};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{Transaction, Tx};
use crate::{Error, Result};

/// Changes in one commit. Beyond this the fsync is already paid for by many.
const BATCH: usize = 32;
/// Changes that may wait: some seconds of a slow disk's work.
const QUEUE: usize = 1024;
/// How long a caller waits for a place in the queue.
const PATIENCE: Duration = Duration::from_secs(5);

/// The way to the writer task. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Writer {
    queue: mpsc::Sender<Box<dyn Waiting>>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Writer {
    pub(crate) fn start(connection: DatabaseConnection) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE);
        let writer = Self { queue, tasks: TaskTracker::new(), stop: CancellationToken::new() };
        writer.tasks.spawn(run(connection, waiting, writer.stop.clone()));
        writer.tasks.close();
        writer
    }

    /// Has the change written and waits for its commit. When the caller goes away the change still happens.
    pub(crate) async fn write<T: Transaction>(&self, transaction: T) -> Result<T::Outcome> {
        let (reply, answer) = oneshot::channel();
        let request = Box::new(Request { transaction, outcome: None, reply });
        match self.queue.send_timeout(request, PATIENCE).await {
            Ok(()) => answer.await.unwrap_or(Err(Error::Closed)),
            Err(mpsc::error::SendTimeoutError::Timeout(_)) => Err(Error::Overloaded),
            Err(mpsc::error::SendTimeoutError::Closed(_)) => Err(Error::Closed),
        }
    }

    /// Writes what is waiting and ends the task.
    pub(crate) async fn close(&self) {
        self.stop.cancel();
        self.tasks.wait().await;
    }
}

async fn run(connection: DatabaseConnection, mut waiting: mpsc::Receiver<Box<dyn Waiting>>, stop: CancellationToken) {
    loop {
        let first = tokio::select! {
            biased;
            first = waiting.recv() => first,
            () = stop.cancelled(), if !waiting.is_closed() => {
                waiting.close();
                continue;
            }
        };
        let Some(first) = first else { return };
        let mut batch = vec![first];
        while batch.len() < BATCH {
            let Ok(next) = waiting.try_recv() else { break };
            batch.push(next);
        }
        let committed = commit(&connection, &mut batch).await;
        for request in batch {
            request.answer(committed.clone());
        }
    }
}

/// One transaction for the batch, one savepoint for each change in it: what fails undoes itself only.
async fn commit(connection: &DatabaseConnection, batch: &mut [Box<dyn Waiting>]) -> Result<()> {
    // The library's plain begin is deferred: a read that is followed by a write then fails when another process wrote
    // in between, whatever the busy timeout.
    let immediate = TransactionOptions {
        sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
        ..TransactionOptions::default()
    };
    let tx = connection.begin_with_options(immediate).await?;
    for request in batch {
        let savepoint = tx.begin().await?;
        match request.apply(&savepoint).await {
            Applied::Yes => savepoint.commit().await?,
            Applied::No => savepoint.rollback().await?,
        }
    }
    Ok(tx.commit().await?)
}

enum Applied {
    Yes,
    No,
}

/// A change in the queue, with its types forgotten.
trait Waiting: Send {
    fn apply<'a>(&'a mut self, tx: &'a Tx) -> Pin<Box<dyn Future<Output = Applied> + Send + 'a>>;
    fn answer(self: Box<Self>, committed: Result<()>);
}

struct Request<T: Transaction> {
    transaction: T,
    outcome: Option<Result<T::Outcome>>,
    reply: oneshot::Sender<Result<T::Outcome>>,
}

impl<T: Transaction> Waiting for Request<T> {
    fn apply<'a>(&'a mut self, tx: &'a Tx) -> Pin<Box<dyn Future<Output = Applied> + Send + 'a>> {
        Box::pin(async move {
            let outcome = self.transaction.apply(tx).await;
            let applied = if outcome.is_ok() { Applied::Yes } else { Applied::No };
            self.outcome = Some(outcome);
            applied
        })
    }

    fn answer(self: Box<Self>, committed: Result<()>) {
        let answer = match (self.outcome, committed) {
            // Its own reason says more than the batch's.
            (Some(Err(own)), _) => Err(own),
            (_, Err(error)) => Err(error),
            (Some(Ok(outcome)), Ok(())) => Ok(outcome),
            (None, Ok(())) => Err(Error::Inconsistent("a change was skipped")),
        };
        // Whoever asked may be gone; the change is written all the same.
        drop(self.reply.send(answer));
    }
}
