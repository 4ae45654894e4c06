//! The server in use: whether it responds, and the pool of its connections.
//!
//! A statement that takes long is no sign of an outage, and a network that drops packets gives no other sign. So a
//! statement that takes longer than [`PATIENCE`] starts a check on a connection of its own, and is given up if the server
//! does not respond to that either. During an outage, nothing is sent but checks, and callers wait for a moment. The pool is
//! replaced, since its connections may hang for as long as TCP repeats its packets.
//!
//! Of several servers, the one that accepts writes is used.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use parking_lot::{Mutex, MutexGuard};
use sea_orm::sqlx::error::DatabaseError;
use sea_orm::sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sea_orm::sqlx::{self, Connection, PgConnection};
use sea_orm::{DatabaseConnection, DbErr, RuntimeErr, SqlxError, SqlxPostgresConnector};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::error::{self, Cause, connection_error};
use crate::{Error, Result};

/// Connections of one process. The server allows a hundred in total, and a transaction holds one for some milliseconds.
const CONNECTIONS: u32 = 16;
/// Maximum wait for a connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// A connection that was idle for at least this long is pinged before use.
const PING_AFTER_IDLE: Duration = Duration::from_secs(5);
/// Statement timeout of the job path, lock waits included. A longer statement would hold up the vacuum of the job
/// table.
const STATEMENT_TIMEOUT: &str = "5s";
/// Releases the locks of a process that stalls inside a transaction.
const IDLE_IN_TRANSACTION_TIMEOUT: &str = "10s";
/// How long an operation may take before the server is checked.
const PATIENCE: Duration = Duration::from_secs(1);
/// How many times an operation is waited for, as long as the server responds: longer than the statement timeout and the
/// wait for a connection.
const ROUNDS: u32 = 12;
/// How long an operation waits for the end of an outage.
const OUTAGE_WAIT: Duration = Duration::from_secs(1);
/// Time limit of a check.
const CHECK_LIMIT: Duration = Duration::from_secs(1);
/// Pause between two checks of a server that does not respond.
const CHECK_AGAIN: Duration = Duration::from_millis(200);
/// Whether a server accepts no writes: a standby, or one that its operator made read-only.
const IS_READ_ONLY: &str = "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::bool";

/// The servers of a database. Cheap to clone.
#[derive(Clone)]
pub(super) struct Server {
    shared: Arc<Shared>,
    /// Ends the check that is under way, when the last clone is dropped.
    _stop: Arc<DropGuard>,
}

struct Shared {
    servers: Vec<PgConnectOptions>,
    state: Mutex<State>,
    condition: watch::Sender<Condition>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// The lock is only held for a few moments, hence no asynchronous one.
struct State {
    pool: DatabaseConnection,
    /// Which server is in use.
    current: usize,
    is_checking: bool,
    /// Whether the connections of the pool may be broken.
    is_suspect: bool,
}

/// What is known of the server.
#[derive(Clone, Copy)]
struct Condition {
    /// Number of checks so far.
    checks: u64,
    responds: bool,
    /// Number of the pool.
    pool: u64,
}

/// Why the server is checked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CheckReason {
    /// An operation takes long.
    Slow,
    /// A connection was lost, and others probably are.
    Lost,
}

/// An error of an operation.
pub(super) trait IsLost {
    /// Whether the connection was lost.
    fn is_connection_lost(&self) -> bool;
}

impl IsLost for DbErr {
    fn is_connection_lost(&self) -> bool {
        error::is_connection_lost(self)
    }
}

impl IsLost for Error {
    fn is_connection_lost(&self) -> bool {
        matches!(self, Self::Unavailable(Cause(cause)) if error::is_connection_lost(cause))
    }
}

/// Why an operation has no result.
enum Unanswered<E> {
    Failed(E),
    /// It took long on a connection of a pool that was replaced meanwhile.
    Replaced,
    NoResponse,
}

impl<E: From<DbErr>> Unanswered<E> {
    fn into_error(self) -> E {
        match self {
            Self::Failed(error) => error,
            Self::Replaced | Self::NoResponse => no_response().into(),
        }
    }
}

impl std::fmt::Debug for Server {
    /// Without the options, which have passwords.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}

/// Why no connection was made in time. The pool does not say it, since it tries again until then.
pub(super) async fn reason(options: &PgConnectOptions) -> SqlxError {
    match timeout(CHECK_LIMIT, PgConnection::connect_with(options)).await {
        Ok(Err(error)) => error,
        Ok(Ok(_)) | Err(_) => SqlxError::PoolTimedOut,
    }
}

impl Server {
    /// Connects to the first server that accepts writes.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when there is none.
    pub(super) async fn connect(servers: Vec<PgConnectOptions>) -> Result<Self> {
        let current = match servers.as_slice() {
            [_] => 0,
            servers => find_primary(servers, 0).await.ok_or_else(no_response)?,
        };
        let options = servers.get(current).ok_or(Error::Url)?;
        let pool = match pool_options().connect_with(job_path(options)).await {
            Err(SqlxError::PoolTimedOut) => Err(reason(options).await),
            connected => connected,
        };
        let pool = pool.map_err(connection_error)?;
        let pool = SqlxPostgresConnector::from_sqlx_postgres_pool(pool);
        let stop = CancellationToken::new();
        let shared = Shared {
            servers,
            state: Mutex::new(State { pool, current, is_checking: false, is_suspect: false }),
            condition: watch::channel(Condition { checks: 0, responds: true, pool: 0 }).0,
            tasks: TaskTracker::new(),
            stop: stop.clone(),
        };
        Ok(Self { shared: Arc::new(shared), _stop: Arc::new(stop.drop_guard()) })
    }

    /// The connections for the job path. Ask for them again for each operation, since they may be replaced.
    pub(super) fn pool(&self) -> DatabaseConnection {
        self.shared.lock().pool.clone()
    }

    /// The server in use, for a connection without the timeouts of the job path.
    pub(super) fn options(&self) -> PgConnectOptions {
        let current = self.shared.lock().current;
        self.shared.servers[current].clone()
    }

    /// Does something with the database, as long as the server responds. If that fails, the outcome is not known.
    ///
    /// # Errors
    /// Those of the operation, and [`Error::Unavailable`] as [`DbErr`] when the server does not respond.
    pub(super) async fn run<T, E: From<DbErr> + IsLost>(
        &self,
        operation: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        self.answered(operation).await.map_err(Unanswered::into_error)
    }

    /// Does something that changes nothing, and does it again if the first connection was lost.
    ///
    /// # Errors
    /// As [`Server::run`].
    pub(super) async fn run_repeatable<T, E, F>(&self, operation: impl Fn(DatabaseConnection) -> F) -> Result<T, E>
    where
        E: From<DbErr> + IsLost,
        F: Future<Output = Result<T, E>>,
    {
        // The pool is asked for when the server responds.
        let once = || async { operation(self.pool()).await };
        match self.answered(once()).await {
            Err(Unanswered::Replaced) => self.run(once()).await,
            // After the check, the pool has other connections.
            Err(Unanswered::Failed(error)) if error.is_connection_lost() && self.checked(CheckReason::Lost).await => {
                self.run(once()).await
            }
            result => result.map_err(Unanswered::into_error),
        }
    }

    async fn answered<T, E: IsLost>(&self, operation: impl Future<Output = Result<T, E>>) -> Result<T, Unanswered<E>> {
        let mut condition = self.shared.condition.subscribe();
        if timeout(OUTAGE_WAIT, condition.wait_for(|condition| condition.responds)).await.is_err() {
            return Err(Unanswered::NoResponse);
        }
        let pool = condition.borrow().pool;
        let operation = async {
            let result = operation.await;
            if result.as_ref().is_err_and(E::is_connection_lost) {
                self.check(CheckReason::Lost);
            }
            result.map_err(Unanswered::Failed)
        };
        tokio::pin!(operation);
        for _ in 0..ROUNDS {
            if let Ok(result) = timeout(PATIENCE, &mut operation).await {
                return result;
            }
            tokio::select! {
                biased;
                result = &mut operation => return result,
                responds = self.checked(CheckReason::Slow) => {
                    if !responds {
                        break;
                    }
                    if condition.borrow().pool != pool {
                        return Err(Unanswered::Replaced);
                    }
                }
            }
        }
        Err(Unanswered::NoResponse)
    }

    /// Checks the server, and returns whether it responds.
    pub(super) async fn checked(&self, reason: CheckReason) -> bool {
        let mut condition = self.shared.condition.subscribe();
        let before = condition.borrow_and_update().checks;
        self.check(reason);
        let checked = condition.wait_for(|condition| condition.checks > before).await;
        checked.is_ok_and(|condition| condition.responds)
    }

    /// Starts a check, unless one is under way.
    pub(super) fn check(&self, reason: CheckReason) {
        let mut state = self.shared.lock();
        state.is_suspect |= reason == CheckReason::Lost;
        if !std::mem::replace(&mut state.is_checking, true) {
            self.shared.tasks.spawn(check_until_it_responds(Arc::clone(&self.shared)));
        }
    }

    /// Closes the connections.
    pub(super) async fn close(self) {
        self.shared.stop.cancel();
        if let Err(error) = self.pool().close_by_ref().await {
            tracing::warn!(%error, "the database pool did not close cleanly");
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Records the outcome of a check. Returns whether the server responds.
    fn record(&self, primary: Option<usize>) -> bool {
        let mut state = self.lock();
        let responded = self.condition.borrow().responds;
        let server = primary.unwrap_or(state.current);
        // In an outage, the pool was replaced when it began.
        let is_lost = primary.is_none() && responded;
        let is_replaced = is_lost || server != state.current || (primary.is_some() && state.is_suspect);
        if is_replaced {
            let pool = pool_options().connect_lazy_with(job_path(&self.servers[server]));
            // The former pool is not closed: its connections end with the operations that use them.
            state.pool = SqlxPostgresConnector::from_sqlx_postgres_pool(pool);
            state.is_suspect = false;
        }
        if server != state.current {
            let options = &self.servers[server];
            tracing::warn!(
                server = options.get_host(),
                port = options.get_port(),
                "another database server is used now"
            );
        }
        state.current = server;
        state.is_checking = primary.is_none();
        drop(state);
        match (responded, primary) {
            (true, None) => tracing::error!("the database does not respond, or accepts no writes; trying again"),
            (false, Some(_)) => tracing::info!("the database responds again"),
            (true, Some(_)) | (false, None) => {}
        }
        self.condition.send_modify(|condition| {
            condition.checks += 1;
            condition.responds = primary.is_some();
            condition.pool += u64::from(is_replaced);
        });
        primary.is_some()
    }
}

async fn check_until_it_responds(shared: Arc<Shared>) {
    loop {
        let current = shared.lock().current;
        let checked = shared.stop.run_until_cancelled(find_primary(&shared.servers, current)).await;
        let Some(primary) = checked else { return };
        if shared.record(primary) {
            return;
        }
        // There is no other way to learn that a server is up again.
        if shared.stop.run_until_cancelled(sleep(CHECK_AGAIN)).await.is_none() {
            return;
        }
    }
}

/// A server that accepts writes: the current one, if it does.
async fn find_primary(servers: &[PgConnectOptions], current: usize) -> Option<usize> {
    let accepting = join_all(servers.iter().map(accepts_writes)).await;
    let is_primary = |server: &usize| accepting.get(*server).copied().unwrap_or_default();
    Some(current).filter(is_primary).or_else(|| (0..servers.len()).find(is_primary))
}

async fn accepts_writes(server: &PgConnectOptions) -> bool {
    let check = async {
        let mut connection = PgConnection::connect_with(server).await?;
        let is_read_only: bool = sqlx::query_scalar(IS_READ_ONLY).fetch_one(&mut connection).await?;
        connection.close().await?;
        Ok(!is_read_only)
    };
    match timeout(CHECK_LIMIT, check).await {
        Ok(Ok(accepts_writes)) => accepts_writes,
        // Such as too many connections: the server responds, and its errors are those of the operations.
        Ok(Err(SqlxError::Database(error))) => !is_starting_or_stopping(&*error),
        Ok(Err(_)) | Err(_) => false,
    }
}

/// Class 57P: the server is shut down, has crashed, or is starting.
fn is_starting_or_stopping(error: &dyn DatabaseError) -> bool {
    error.code().is_some_and(|code| code.starts_with("57P"))
}

/// The error of a server that does not respond.
fn no_response() -> DbErr {
    let error = std::io::Error::new(std::io::ErrorKind::TimedOut, "the server does not respond, or accepts no writes");
    DbErr::Conn(RuntimeErr::SqlxError(SqlxError::Io(error).into()))
}

fn job_path(options: &PgConnectOptions) -> PgConnectOptions {
    options.clone().options([
        ("statement_timeout", STATEMENT_TIMEOUT),
        ("idle_in_transaction_session_timeout", IDLE_IN_TRANSACTION_TIMEOUT),
    ])
}

fn pool_options() -> PgPoolOptions {
    PgPoolOptions::new()
        .max_connections(CONNECTIONS)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        // A ping costs a round trip, so only idle connections are checked.
        .test_before_acquire(false)
        .before_acquire(|connection, metadata| {
            Box::pin(async move {
                if metadata.idle_for >= PING_AFTER_IDLE {
                    connection.ping().await?;
                }
                Ok(true)
            })
        })
}
