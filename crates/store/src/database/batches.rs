//! Changes of one kind that arrive while others of the kind are made wait, and are made together, in one transaction and
//! with few statements. There is no delay: a lone change is made at once.
//!
//! A change that cannot be made with the others, or that fails with them, is made in a transaction of its own. So no
//! change waits for the locks of another team, and none fails because of another.

use std::any::{Any, TypeId};
use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::apply;
use super::server::Server;
use super::transaction::{BatchedTransaction, Transaction, Tx};
use super::writer::Writer;
use crate::{Error, Result};

/// Maximum changes of one batch. Every number of rows is a different statement, which connections prepare and keep, so
/// batches have 1, 2, 4, 8 or 16.
const BATCH: usize = 16;
/// Maximum batches of one kind at the same time. With PostgreSQL on the same machine, three to six were smaller and slower, and
/// one was slower for grabs that wait in the queue.
const CONCURRENT: usize = 2;
/// Maximum waiting changes of one kind.
const QUEUE: usize = 1024;
/// A change that waits longer than this is refused: before a synchronous create would have to respond.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(20);
/// If a batch fails after this time, it has waited for a database that does not respond, and the waiting changes fail, too:
/// otherwise each would wait as long again.
const OUTAGE_THRESHOLD: Duration = Duration::from_millis(500);

/// What the changes are made with.
#[derive(Clone)]
pub(super) enum Connections {
    /// SQLite. Its writer commits batches of several kinds together.
    Sqlite(Writer),
    /// PostgreSQL.
    Postgres(Server),
}

impl Connections {
    async fn write<T: Transaction>(&self, change: Arc<T>) -> Result<T::Outcome> {
        match self {
            Self::Sqlite(writer) => writer.write(change).await,
            Self::Postgres(server) => apply::write(server, &*change).await,
        }
    }

    /// Whether changes with the same key may be in different batches at the same time: the writer of SQLite makes one batch after
    /// the other, and no change waits for a lock.
    const fn is_serial(&self) -> bool {
        match self {
            Self::Sqlite(_) => true,
            Self::Postgres(_) => false,
        }
    }

    /// Makes a batch. The inner error: nothing was changed.
    ///
    /// # Errors
    /// It is not known whether the batch was committed.
    async fn write_batch<T: BatchedTransaction>(&self, batch: Batch<T>) -> Result<Result<Vec<Option<T::Outcome>>>> {
        match self {
            Self::Sqlite(writer) => match writer.write(batch).await {
                Err(error) if !error.concerns_row() => Err(error),
                result => Ok(result),
            },
            Self::Postgres(server) => apply::try_write(server, &batch).await,
        }
    }
}

/// Changes that are made together.
struct Batch<T>(Vec<Arc<T>>);

impl<T: BatchedTransaction> Transaction for Batch<T> {
    type Outcome = Vec<Option<T::Outcome>>;
    const KEEPS_ACCESS: bool = T::KEEPS_ACCESS;

    async fn apply(&self, tx: &Tx) -> Result<Self::Outcome> {
        let Self(changes) = self;
        let changes: Vec<&T> = changes.iter().map(|change| &**change).collect();
        T::apply_batch(&changes, tx).await
    }
}

/// The queues of all kinds of changes. Cheap to clone.
#[derive(Clone)]
pub(super) struct Batches {
    connections: Connections,
    tasks: TaskTracker,
    /// A `Queue<T>` for each type of change.
    queues: Arc<Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>>,
}

impl fmt::Debug for Batches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batches").finish_non_exhaustive()
    }
}

impl Batches {
    pub(super) fn new(connections: Connections) -> Self {
        Self { connections, tasks: TaskTracker::new(), queues: Arc::default() }
    }

    /// Makes a change.
    ///
    /// # Errors
    /// Those of the change; [`Error::Overloaded`] if it would have to wait for too long.
    pub(super) async fn write<T: BatchedTransaction>(&self, change: T) -> Result<T::Outcome> {
        let (reply, outcome) = oneshot::channel();
        self.queue::<T>()?.add(Request { change: Arc::new(change), reply, since: Instant::now() })?;
        outcome.await.unwrap_or(Err(Error::Closed))
    }

    /// Waits until the changes that have begun are made.
    pub(super) async fn finish(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn queue<T: BatchedTransaction>(&self) -> Result<Arc<Queue<T>>> {
        let mut queues = self.queues.lock();
        let queue = queues
            .entry(TypeId::of::<T>())
            .or_insert_with(|| Arc::new(Queue::<T>::new(self.connections.clone(), self.tasks.clone())));
        let queue = Arc::clone(queue).downcast();
        queue.map_err(|_| Error::Inconsistent("queue of another kind of change"))
    }
}

/// The changes of one kind.
struct Queue<T: BatchedTransaction> {
    connections: Connections,
    tasks: TaskTracker,
    /// The lock is only held for a few moments, hence no asynchronous one.
    state: Mutex<State<T>>,
}

struct State<T: BatchedTransaction> {
    waiting: VecDeque<Request<T>>,
    /// Keys of the changes that are being made.
    keys: HashSet<Uuid>,
    /// Number of batches that are being made.
    batches: usize,
    is_serial: bool,
}

struct Request<T: BatchedTransaction> {
    change: Arc<T>,
    reply: oneshot::Sender<Result<T::Outcome>>,
    since: Instant,
}

impl<T: BatchedTransaction> Queue<T> {
    fn new(connections: Connections, tasks: TaskTracker) -> Self {
        let is_serial = connections.is_serial();
        let state = State { waiting: VecDeque::new(), keys: HashSet::new(), batches: 0, is_serial };
        Self { connections, tasks, state: Mutex::new(state) }
    }

    fn add(self: &Arc<Self>, request: Request<T>) -> Result<()> {
        {
            let mut state = self.lock();
            if state.waiting.len() >= QUEUE {
                return Err(Error::Overloaded);
            }
            state.waiting.push_back(request);
        }
        self.start_batches();
        Ok(())
    }

    fn start_batches(self: &Arc<Self>) {
        loop {
            let batch = self.lock().take_batch();
            if batch.is_empty() {
                return;
            }
            let keys = batch.iter().map(|request| request.change.key()).collect();
            let reserved = Reserved { queue: Arc::clone(self), keys, is_batch: true };
            self.tasks.spawn(make_batch(batch, reserved));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock()
    }
}

impl<T: BatchedTransaction> State<T> {
    /// Removes the next changes that can be made together from the queue, and reserves their keys. None if there are
    /// enough batches, or each change waits for one with the same key.
    fn take_batch(&mut self) -> Vec<Request<T>> {
        if self.batches >= CONCURRENT {
            return Vec::new();
        }
        self.waiting.retain(|request| !request.reply.is_closed());
        while let Some(late) = self.waiting.pop_front_if(|first| first.since.elapsed() > QUEUE_TIMEOUT) {
            drop(late.reply.send(Err(Error::Overloaded)));
        }
        let is_free = |(_, request): &(usize, &Request<T>)| !self.keys.contains(&request.change.key());
        let free = self.waiting.iter().enumerate().filter(is_free);
        let mut chosen: Vec<usize> = free.map(|(index, _)| index).take(BATCH).collect();
        let Some(exponent) = chosen.len().checked_ilog2() else { return Vec::new() };
        chosen.truncate(1 << exponent);
        // From the back, so that the indexes stay valid.
        let mut batch: Vec<_> = chosen.into_iter().rev().filter_map(|index| self.waiting.remove(index)).collect();
        batch.reverse();
        if !self.is_serial {
            self.keys.extend(batch.iter().map(|request| request.change.key()));
        }
        self.batches += 1;
        batch
    }

    fn refuse_waiting(&mut self, error: &Error) {
        for request in self.waiting.drain(..) {
            drop(request.reply.send(Err(error.clone())));
        }
    }
}

/// The keys of changes that are being made, and the place of their batch. They are given back when this is dropped.
struct Reserved<T: BatchedTransaction> {
    queue: Arc<Queue<T>>,
    keys: Vec<Uuid>,
    /// Whether this includes the place of a batch.
    is_batch: bool,
}

impl<T: BatchedTransaction> Reserved<T> {
    /// The key of one of the changes, for a task of its own.
    fn split(&mut self, key: Uuid) -> Self {
        self.keys.retain(|&other| other != key);
        Self { queue: Arc::clone(&self.queue), keys: vec![key], is_batch: false }
    }
}

impl<T: BatchedTransaction> Drop for Reserved<T> {
    fn drop(&mut self) {
        {
            let mut state = self.queue.lock();
            state.batches -= usize::from(self.is_batch);
            for key in &self.keys {
                state.keys.remove(key);
            }
        }
        self.queue.start_batches();
    }
}

async fn make_batch<T: BatchedTransaction>(batch: Vec<Request<T>>, mut reserved: Reserved<T>) {
    let queue = Arc::clone(&reserved.queue);
    let changes = batch.iter().map(|request| Arc::clone(&request.change)).collect();
    let began = Instant::now();
    let outcomes = match queue.connections.write_batch(Batch(changes)).await {
        Ok(Ok(outcomes)) => outcomes.into_iter().map(|outcome| outcome.map(Ok)).collect(),
        Ok(Err(error)) if batch.len() == 1 && !error.is_transient() => vec![Some(Err(error))],
        Ok(Err(_)) => batch.iter().map(|_| None).collect(),
        Err(error) => {
            if began.elapsed() > OUTAGE_THRESHOLD {
                queue.lock().refuse_waiting(&error);
            }
            batch.iter().map(|_| Some(Err(error.clone()))).collect::<Vec<_>>()
        }
    };
    for (request, outcome) in batch.into_iter().zip(outcomes) {
        match outcome {
            // The caller may be gone; the change is made anyway.
            Some(outcome) => drop(request.reply.send(outcome)),
            None => {
                let reserved = reserved.split(request.change.key());
                queue.tasks.spawn(make_alone(request, reserved));
            }
        }
    }
}

async fn make_alone<T: BatchedTransaction>(request: Request<T>, reserved: Reserved<T>) {
    let outcome = reserved.queue.connections.write(request.change).await;
    drop(request.reply.send(outcome));
}
