//! One interface to the two databases: reads use a pool, writes are whole transactions.

mod apply;
mod batches;
mod notifications;
mod postgres;
mod reader;
mod server;
mod server_addresses;
mod service_lock;
mod spin;
mod sqlite;
mod steps;
mod transaction;
mod writer;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sea_orm::ConnectionTrait;

use crate::{Error, Result};
use batches::{Batches, Connections};
pub use notifications::Notifications;
use postgres::Postgres;
pub use service_lock::{LockMode, OtherService, ServiceLock};
use sqlite::Sqlite;
pub use steps::{MigrationPlan, PendingStep};
pub(crate) use transaction::{BatchedTransaction, RowInsert, Transaction, Tx};

/// The kind of database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One file, used by one service process.
    Sqlite,
    /// A server, shared by any number of service processes.
    Postgres,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        })
    }
}

/// An open database. Clones share the connections.
#[derive(Clone, Debug)]
pub(crate) struct Database {
    engine: Engine,
    batches: Batches,
    /// See [`Database::access_version`].
    access_version: Arc<AtomicU64>,
}

#[derive(Clone, Debug)]
enum Engine {
    Sqlite(Sqlite),
    Postgres(Postgres),
}

impl Database {
    pub(crate) async fn open(url: &str) -> Result<Self> {
        let engine = match url.split_once(':').map(|(scheme, _)| scheme) {
            Some("sqlite") => Engine::Sqlite(Sqlite::open(url).await?),
            Some("postgres" | "postgresql") => Engine::Postgres(Postgres::open(url).await?),
            Some(_) | None => return Err(Error::Url),
        };
        let connections = match &engine {
            Engine::Sqlite(sqlite) => Connections::Sqlite(sqlite.writer().clone()),
            Engine::Postgres(postgres) => Connections::Postgres(postgres.server().clone()),
        };
        Ok(Self { engine, batches: Batches::new(connections), access_version: Arc::default() })
    }

    /// See [`crate::Store::file`].
    pub(crate) fn file(url: &str) -> Result<Option<PathBuf>> {
        match url.starts_with("sqlite:") {
            true => sqlite::file(url),
            false => Ok(None),
        }
    }

    pub(crate) const fn kind(&self) -> Kind {
        match &self.engine {
            Engine::Sqlite(_) => Kind::Sqlite,
            Engine::Postgres(_) => Kind::Postgres,
        }
    }

    /// Runs a change and commits it.
    pub(crate) async fn write<T: Transaction>(&self, transaction: T) -> Result<T::Outcome> {
        let outcome = match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.write(transaction).await,
            Engine::Postgres(postgres) => postgres.write(&transaction).await,
        };
        self.note_written::<T>();
        outcome
    }

    /// Runs a change together with others of its kind that arrive at the same time, and commits it. If the caller is
    /// dropped before that has begun, the change is not made.
    pub(crate) async fn write_batched<T: BatchedTransaction>(&self, transaction: T) -> Result<T::Outcome> {
        let outcome = match &self.engine {
            Engine::Sqlite(sqlite) if T::IS_INSERT => sqlite.write(transaction).await,
            Engine::Sqlite(_) | Engine::Postgres(_) => self.batches.write(transaction).await,
        };
        self.note_written::<T>();
        outcome
    }

    /// Also after an error: the commit may have been made without its response.
    fn note_written<T: Transaction>(&self) {
        if !T::KEEPS_ACCESS {
            self.access_version.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Changes with every change that this process makes, except those that access does not depend on.
    pub(crate) fn access_version(&self) -> u64 {
        self.access_version.load(Ordering::SeqCst)
    }

    /// The connections for single statements that read committed data.
    pub(crate) const fn reader(&self) -> &impl ConnectionTrait {
        self
    }

    /// Begins a read-only transaction whose statements see one snapshot.
    pub(crate) async fn snapshot(&self) -> Result<Tx> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.snapshot().await,
            Engine::Postgres(postgres) => postgres.snapshot().await,
        }
    }

    pub(crate) async fn migrate(&self) -> Result<()> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.migrate().await,
            Engine::Postgres(postgres) => postgres.migrate().await,
        }
    }

    pub(crate) async fn plan_migration(&self) -> Result<MigrationPlan> {
        steps::plan(self.reader()).await
    }

    pub(crate) async fn lock_service(
        &self,
        mode: LockMode,
        wait: Duration,
    ) -> Result<Result<ServiceLock, OtherService>> {
        match &self.engine {
            Engine::Sqlite(_) => Ok(Ok(ServiceLock::unneeded())),
            Engine::Postgres(postgres) => postgres.lock_service(mode, wait).await,
        }
    }

    pub(crate) async fn notifications(&self, channel: &str) -> Result<Notifications> {
        match &self.engine {
            Engine::Sqlite(_) => Err(Error::Inconsistent("SQLite has no notifications")),
            Engine::Postgres(postgres) => postgres.notifications(channel).await,
        }
    }

    pub(crate) async fn copy_to(&self, path: &Path) -> Result<()> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.copy_to(path).await,
            Engine::Postgres(_) => Err(Error::Inconsistent("only an SQLite database can be copied to a file")),
        }
    }

    pub(crate) async fn ping(&self) -> Result<()> {
        match &self.engine {
            Engine::Sqlite(sqlite) => Ok(sqlite.readers().ping().await?),
            Engine::Postgres(postgres) => Ok(postgres.read(|pool| async move { pool.ping().await }).await?),
        }
    }

    pub(crate) async fn close(self) {
        self.batches.finish().await;
        match self.engine {
            Engine::Sqlite(sqlite) => sqlite.close().await,
            Engine::Postgres(postgres) => postgres.close().await,
        }
    }
}
