//! Ensures that one service uses a PostgreSQL database, or only processes of one cluster: a session-level advisory lock
//! on a connection of its own, which the processes of a cluster share.
//!
//! A service takes over all leases in its database at start, so a second one would steal those of the first. SQLite
//! needs no lock here: the data directory, which contains the database, has one.

use std::sync::Arc;
use std::time::Duration;

use sea_orm::sqlx::postgres::PgConnectOptions;
use sea_orm::sqlx::{self, Connection, PgConnection};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::server::{CheckReason, Server};
use crate::Result;
use crate::error::connection_error;

/// Key of the advisory lock: an arbitrary number that no other program uses.
const LOCK: i64 = 0x6772_6162_6422;
/// How often the connection is checked.
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// Maximum wait for a response of the server.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Lets the server notice within a minute that the machine of a service is gone, and release its lock.
const KEEPALIVE: [(&str, &str); 3] =
    [("tcp_keepalives_idle", "30"), ("tcp_keepalives_interval", "10"), ("tcp_keepalives_count", "3")];
/// The session that holds the lock.
const HOLDER: &str = "SELECT pg_stat_activity.pid, pg_stat_activity.backend_start::text, \
    COALESCE(host(pg_stat_activity.client_addr), 'the database''s machine') \
    FROM pg_locks JOIN pg_stat_activity USING (pid) \
    WHERE locktype = 'advisory' AND granted AND objsubid = 1 \
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) \
    AND (classid::bigint << 32 | objid::bigint) = $1";
const OWN_SESSION: &str = "SELECT pid, backend_start::text FROM pg_stat_activity WHERE pid = pg_backend_pid()";
const END_SESSION: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
    WHERE pid = $1 AND backend_start = $2::timestamptz";

/// Who may hold the lock at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode {
    /// Nobody else.
    Alone,
    /// Others that share it: the processes of a cluster.
    Shared,
}

impl LockMode {
    const fn query(self) -> &'static str {
        match self {
            Self::Alone => "SELECT pg_try_advisory_lock($1)",
            Self::Shared => "SELECT pg_try_advisory_lock_shared($1)",
        }
    }

    const fn unlock_query(self) -> &'static str {
        match self {
            Self::Alone => "SELECT pg_advisory_unlock($1)",
            Self::Shared => "SELECT pg_advisory_unlock_shared($1)",
        }
    }
}

/// How the lock is taken.
#[derive(Debug)]
struct Locking {
    server: Server,
    mode: LockMode,
}

impl Locking {
    fn options(&self) -> PgConnectOptions {
        self.server.options().options(KEEPALIVE)
    }
}

/// The right to be the only service on a database, or a process of its cluster. Dropping it releases the lock soon;
/// [`ServiceLock::release`] waits for it.
#[derive(Debug)]
pub struct ServiceLock {
    /// Whether another service has the lock now. `None` for SQLite.
    lost: Option<watch::Receiver<bool>>,
    tasks: TaskTracker,
    _stop: DropGuard,
}

/// Another service that holds the lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherService {
    /// Its network address, or `the database's machine`.
    pub address: String,
    /// When it connected, as the server writes it.
    pub since: String,
}

/// A database session.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Session {
    pid: i32,
    since: String,
}

/// The outcome of one attempt.
enum Attempt {
    Locked(PgConnection, Session),
    HeldBy(Session, String),
    /// The lock was released between the attempt and the search for its holder.
    Unclear,
}

impl ServiceLock {
    /// A lock that needs no database.
    pub(super) fn unneeded() -> Self {
        let tasks = TaskTracker::new();
        // An open tracker would never finish waiting.
        tasks.close();
        Self { lost: None, tasks, _stop: CancellationToken::new().drop_guard() }
    }

    /// Takes the lock. Waits up to `wait` for a service that is about to exit.
    pub(super) async fn acquire(server: &Server, mode: LockMode, wait: Duration) -> Result<Result<Self, OtherService>> {
        let locking = Arc::new(Locking { server: server.clone(), mode });
        let deadline = Instant::now() + wait;
        let mut attempts = tokio::time::interval(CHECK_EVERY);
        attempts.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            attempts.tick().await;
            let is_last = Instant::now() >= deadline;
            match attempt(&locking).await? {
                Attempt::Locked(connection, session) => return Ok(Ok(Self::hold(locking, connection, session))),
                Attempt::HeldBy(Session { since, .. }, address) if is_last => {
                    return Ok(Err(OtherService { address, since }));
                }
                Attempt::HeldBy(..) | Attempt::Unclear => {}
            }
        }
    }

    fn hold(locking: Arc<Locking>, connection: PgConnection, session: Session) -> Self {
        let (lost, receiver) = watch::channel(false);
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        tasks.spawn(hold(locking, connection, session, lost, stop.clone()));
        tasks.close();
        Self { lost: Some(receiver), tasks, _stop: stop.drop_guard() }
    }

    /// Resolves when another service has taken the lock, which is possible while the connection is interrupted. This
    /// process must then end.
    pub async fn lost(&self) {
        if let Some(mut lost) = self.lost.clone()
            && lost.wait_for(|lost| *lost).await.is_ok()
        {
            return;
        }
        std::future::pending::<()>().await;
    }

    /// Releases the lock, and waits until it is released.
    pub async fn release(self) {
        let Self { lost: _, tasks, _stop: stop } = self;
        drop(stop);
        tasks.wait().await;
    }
}

/// Keeps the connection, and reconnects when it is lost.
async fn hold(
    locking: Arc<Locking>,
    mut connection: PgConnection,
    mut session: Session,
    lost: watch::Sender<bool>,
    stop: CancellationToken,
) {
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            () = tokio::time::sleep(CHECK_EVERY) => {}
        }
        if matches!(tokio::time::timeout(TIMEOUT, connection.ping()).await, Ok(Ok(()))) {
            continue;
        }
        tracing::warn!("the connection that locks the database was lost; reconnecting");
        locking.server.check(CheckReason::Lost);
        match stop.run_until_cancelled(regain(&locking, &session)).await {
            None => return,
            Some(Some(regained)) => (connection, session) = regained,
            Some(None) => {
                tracing::error!("another grabd has taken over the database");
                lost.send_replace(true);
                return;
            }
        }
    }
    // The server also releases the lock when the connection ends, but some time after it was closed here.
    let unlock = async {
        let unlocked: bool =
            sqlx::query_scalar(locking.mode.unlock_query()).bind(LOCK).fetch_one(&mut connection).await?;
        debug_assert!(unlocked, "the lock was held");
        connection.close().await
    };
    if !matches!(tokio::time::timeout(TIMEOUT, unlock).await, Ok(Ok(()))) {
        tracing::warn!(
            "the lock of the database was not released in order; it is when the server drops the connection"
        );
    }
}

/// Takes the lock again. `None` when another service has it.
async fn regain(locking: &Locking, former: &Session) -> Option<(PgConnection, Session)> {
    loop {
        match attempt(locking).await {
            Ok(Attempt::Locked(connection, session)) => return Some((connection, session)),
            // The server has not noticed yet that the former connection is gone.
            Ok(Attempt::HeldBy(session, _)) if session == *former => {
                if let Err(error) = end_session(&locking.options(), former).await {
                    tracing::warn!(%error, "the former connection to the database could not be ended; trying again");
                }
            }
            Ok(Attempt::HeldBy(..)) => return None,
            Ok(Attempt::Unclear) => {}
            // Without the database there is nothing to protect.
            Err(error) => tracing::warn!(%error, "the database cannot be locked again yet; trying again"),
        }
        tokio::time::sleep(CHECK_EVERY).await;
    }
}

async fn attempt(locking: &Locking) -> Result<Attempt> {
    let attempt = async {
        let mut connection = PgConnection::connect_with(&locking.options()).await?;
        let locked: bool = sqlx::query_scalar(locking.mode.query()).bind(LOCK).fetch_one(&mut connection).await?;
        if locked {
            let (pid, since) = sqlx::query_as(OWN_SESSION).fetch_one(&mut connection).await?;
            return Ok(Attempt::Locked(connection, Session { pid, since }));
        }
        let holder: Option<(i32, String, String)> =
            sqlx::query_as(HOLDER).bind(LOCK).fetch_optional(&mut connection).await?;
        connection.close().await?;
        Ok(match holder {
            Some((pid, since, address)) => Attempt::HeldBy(Session { pid, since }, address),
            None => Attempt::Unclear,
        })
    };
    match tokio::time::timeout(TIMEOUT, attempt).await {
        Ok(attempt) => attempt.map_err(connection_error),
        Err(_) => Err(connection_error(sqlx::Error::PoolTimedOut)),
    }
}

async fn end_session(options: &PgConnectOptions, session: &Session) -> Result<()> {
    let end = async {
        let mut connection = PgConnection::connect_with(options).await?;
        let ended = sqlx::query(END_SESSION).bind(session.pid).bind(session.since.as_str());
        ended.execute(&mut connection).await?;
        connection.close().await
    };
    match tokio::time::timeout(TIMEOUT, end).await {
        Ok(ended) => ended.map_err(connection_error),
        Err(_) => Err(connection_error(sqlx::Error::PoolTimedOut)),
    }
}
