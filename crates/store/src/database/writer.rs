//! The single SQLite writer, with group commit. Changes that arrive during a commit are queued and committed together
//! by the next one. There is no batching delay: a lone change is committed at once.

use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use sea_orm::{ConnectionTrait, DatabaseConnection, SqliteTransactionMode, TransactionOptions, TransactionTrait};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::spin::spin_before_sleep;
use super::transaction::{RowInsert, Transaction, Tx};
use crate::entities::test_row::{TestRow, insert_test_rows};
use crate::{Error, Result};

/// Maximum changes per commit. Larger batches would hardly reduce the fsync cost per change. Every number of rows that are
/// inserted together is a different statement, which the connection prepares and keeps, so there are at most this many.
const BATCH: usize = 32;
/// Maximum queued changes: some seconds of work for a slow disk.
const QUEUE: usize = 1024;
/// Maximum wait for a slot in the queue.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the writer spins while it waits for a statement, which takes 10 to 30 µs in the connection's thread. Putting the
/// writer to sleep and waking it takes longer: with spinning, 1.6 times as many changes are made in the same time.
const SPIN_LIMIT: Duration = Duration::from_micros(30);

/// Handle to the writer task. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Writer {
    sender: mpsc::Sender<Box<dyn QueuedChange>>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Writer {
    pub(crate) fn start(connection: DatabaseConnection) -> Self {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let writer = Self { sender, tasks: TaskTracker::new(), stop: CancellationToken::new() };
        writer.tasks.spawn(run(connection, receiver, writer.stop.clone()));
        writer.tasks.close();
        writer
    }

    /// Queues the change and waits for its commit. The change is written even if the caller is dropped.
    pub(crate) async fn write<T: Transaction>(&self, transaction: T) -> Result<T::Outcome> {
        let (reply, response) = oneshot::channel();
        let request = Box::new(Request { transaction, outcome: None, refusal: None, reply });
        match self.sender.send_timeout(request, QUEUE_TIMEOUT).await {
            Ok(()) => response.await.unwrap_or(Err(Error::Closed)),
            Err(mpsc::error::SendTimeoutError::Timeout(_)) => Err(Error::Overloaded),
            Err(mpsc::error::SendTimeoutError::Closed(_)) => Err(Error::Closed),
        }
    }

    /// Writes the queued changes and ends the task.
    pub(crate) async fn close(&self) {
        self.stop.cancel();
        self.tasks.wait().await;
    }
}

async fn run(
    connection: DatabaseConnection,
    mut receiver: mpsc::Receiver<Box<dyn QueuedChange>>,
    stop: CancellationToken,
) {
    let limit = spin_limit();
    loop {
        let first = tokio::select! {
            biased;
            first = receiver.recv() => first,
            () = stop.cancelled(), if !receiver.is_closed() => {
                receiver.close();
                continue;
            }
        };
        let Some(first) = first else { return };
        let mut batch = vec![first];
        while batch.len() < BATCH {
            let Ok(next) = receiver.try_recv() else { break };
            batch.push(next);
        }
        let committed = spin_before_sleep(limit, commit(&connection, &mut batch)).await;
        for request in batch {
            request.reply(committed.clone());
        }
    }
}

/// Zero if there is only one processor, which the connection's thread needs.
fn spin_limit() -> Duration {
    match std::thread::available_parallelism() {
        Ok(processors) if processors.get() > 1 => SPIN_LIMIT,
        Ok(_) | Err(_) => Duration::ZERO,
    }
}

/// One transaction for the batch. A change that fails must roll back only itself, which takes a savepoint for each change,
/// so two more statements. Since changes rarely fail, that is done only if one has.
async fn commit(connection: &DatabaseConnection, batch: &mut [Box<dyn QueuedChange>]) -> Result<()> {
    let rows: Vec<_> = batch.iter_mut().filter_map(|request| request.take_insert()).collect();
    if rows.len() == batch.len() {
        // A statement alone is a transaction. Within one, SQLite would copy every page that the statement changes, to be able
        // to undo only the statement, and BEGIN and COMMIT would have to be sent to the connection's thread, too.
        return match insert(connection, &rows, batch).await {
            Ok(()) => Ok(()),
            Err(_) => commit_with_savepoints(connection, batch).await,
        };
    }
    let tx = begin(connection).await?;
    if insert(&tx, &rows, batch).await.is_err() {
        tx.rollback().await?;
        return commit_with_savepoints(connection, batch).await;
    }
    for request in batch.iter_mut().filter(|request| !request.has_outcome()) {
        if let Applied::No = request.apply(&tx).await {
            tx.rollback().await?;
            return match batch.len() {
                1 => Ok(()),
                _ => commit_with_savepoints(connection, batch).await,
            };
        }
    }
    Ok(tx.commit().await?)
}

/// Inserts the rows of all changes that only insert one row, with one statement: most of the time of an insert is spent on
/// sending it to the connection's thread and waiting for the answer.
async fn insert(
    connection: &impl ConnectionTrait,
    rows: &[TestRow],
    batch: &mut [Box<dyn QueuedChange>],
) -> Result<()> {
    let refused = insert_test_rows(connection, rows).await?;
    if !refused.is_empty() {
        batch.iter_mut().for_each(|request| request.refuse(&refused));
    }
    Ok(())
}

async fn commit_with_savepoints(connection: &DatabaseConnection, batch: &mut [Box<dyn QueuedChange>]) -> Result<()> {
    let tx = begin(connection).await?;
    for request in batch {
        let savepoint = tx.begin().await?;
        match request.apply(&savepoint).await {
            Applied::Yes => savepoint.commit().await?,
            Applied::No => savepoint.rollback().await?,
        }
    }
    Ok(tx.commit().await?)
}

async fn begin(connection: &DatabaseConnection) -> Result<Tx> {
    // A plain BEGIN is deferred: a read followed by a write then fails if another process wrote in between, regardless
    // of the busy timeout.
    let immediate = TransactionOptions {
        sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
        ..TransactionOptions::default()
    };
    Ok(connection.begin_with_options(immediate).await?)
}

enum Applied {
    Yes,
    No,
}

/// A queued change with its type erased.
trait QueuedChange: Send {
    /// The row to insert, if that is the whole change. Its outcome is set.
    fn take_insert(&mut self) -> Option<TestRow>;
    /// Sets the outcome of a change whose row was not inserted, if it is one of these.
    fn refuse(&mut self, rows: &HashSet<Uuid>);
    fn has_outcome(&self) -> bool;
    fn apply<'a>(&'a mut self, tx: &'a Tx) -> Pin<Box<dyn Future<Output = Applied> + Send + 'a>>;
    fn reply(self: Box<Self>, committed: Result<()>);
}

struct Request<T: Transaction> {
    transaction: T,
    outcome: Option<Result<T::Outcome>>,
    /// The id of the row that is inserted for the change, and the outcome if it is not.
    refusal: Option<(Uuid, T::Outcome)>,
    reply: oneshot::Sender<Result<T::Outcome>>,
}

impl<T: Transaction> QueuedChange for Request<T> {
    fn take_insert(&mut self) -> Option<TestRow> {
        let RowInsert { row, inserted, refused } = self.transaction.as_insert()?;
        self.outcome = Some(Ok(inserted));
        self.refusal = row.id().map(|id| (id, refused));
        Some(row)
    }

    fn refuse(&mut self, rows: &HashSet<Uuid>) {
        if let Some((_, refused)) = self.refusal.take_if(|(id, _)| rows.contains(id)) {
            self.outcome = Some(Ok(refused));
        }
    }

    fn has_outcome(&self) -> bool {
        self.outcome.is_some()
    }

    fn apply<'a>(&'a mut self, tx: &'a Tx) -> Pin<Box<dyn Future<Output = Applied> + Send + 'a>> {
        Box::pin(async move {
            let outcome = self.transaction.apply(tx).await;
            let applied = if outcome.is_ok() { Applied::Yes } else { Applied::No };
            self.outcome = Some(outcome);
            applied
        })
    }

    fn reply(self: Box<Self>, committed: Result<()>) {
        let result = match (self.outcome, committed) {
            // The change's own error is more precise than the batch's.
            (Some(Err(own)), _) => Err(own),
            (_, Err(error)) => Err(error),
            (Some(Ok(outcome)), Ok(())) => Ok(outcome),
            (None, Ok(())) => Err(Error::Inconsistent("change was not applied")),
        };
        // The caller may be gone; the change is written anyway.
        drop(self.reply.send(result));
    }
}
