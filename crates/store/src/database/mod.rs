//! One interface to the two databases: reads use a pool, writes are whole transactions.

mod notifications;
mod postgres;
mod service_lock;
mod sqlite;
mod steps;
mod transaction;
mod writer;

use std::fmt;
use std::path::Path;
use std::time::Duration;

use grabd_migrations::Migrator;
use sea_orm::DatabaseConnection;
use uuid::Uuid;

use crate::{Error, Result};
pub use notifications::Notifications;
use postgres::Postgres;
pub use service_lock::{LockMode, OtherService, ServiceLock};
use sqlite::Sqlite;
pub(crate) use transaction::{Transaction, Tx};

/// Pads the ids to a power of two by repeating the last one.
///
/// Every number of bind parameters is a different statement to parse, plan and cache, so padding keeps them few.
pub(crate) fn padded(ids: impl Iterator<Item = Uuid>) -> Vec<Uuid> {
    let mut ids: Vec<Uuid> = ids.collect();
    if let Some(last) = ids.last().copied() {
        ids.resize(ids.len().next_power_of_two(), last);
    }
    ids
}

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

#[derive(Clone, Debug)]
pub(crate) enum Database {
    Sqlite(Sqlite),
    Postgres(Postgres),
}

impl Database {
    pub(crate) async fn open(url: &str) -> Result<Self> {
        match url.split_once(':').map(|(scheme, _)| scheme) {
            Some("sqlite") => Ok(Self::Sqlite(Sqlite::open(url).await?)),
            Some("postgres" | "postgresql") => Ok(Self::Postgres(Postgres::open(url).await?)),
            Some(_) | None => Err(Error::Url),
        }
    }

    pub(crate) const fn kind(&self) -> Kind {
        match self {
            Self::Sqlite(_) => Kind::Sqlite,
            Self::Postgres(_) => Kind::Postgres,
        }
    }

    /// Runs a change and commits it.
    pub(crate) async fn write<T: Transaction>(&self, transaction: T) -> Result<T::Outcome> {
        match self {
            Self::Sqlite(sqlite) => sqlite.write(transaction).await,
            Self::Postgres(postgres) => postgres.write(&transaction).await,
        }
    }

    /// The connections for single statements that read committed data.
    pub(crate) const fn reader(&self) -> &DatabaseConnection {
        match self {
            Self::Sqlite(sqlite) => sqlite.readers(),
            Self::Postgres(postgres) => postgres.pool(),
        }
    }

    /// Begins a read-only transaction whose statements see one snapshot.
    pub(crate) async fn snapshot(&self) -> Result<Tx> {
        match self {
            Self::Sqlite(sqlite) => sqlite.snapshot().await,
            Self::Postgres(postgres) => postgres.snapshot().await,
        }
    }

    pub(crate) async fn migrate(&self) -> Result<()> {
        match self {
            Self::Sqlite(sqlite) => sqlite.migrate().await,
            Self::Postgres(postgres) => postgres.migrate().await,
        }
    }

    pub(crate) async fn schema_is_current(&self) -> Result<bool> {
        steps::check(self.reader()).await?;
        let applied = steps::applied(self.reader()).await?;
        Ok(Migrator::SOURCES.iter().all(|step| applied.iter().any(|name| name == step.name)))
    }

    pub(crate) async fn lock_service(
        &self,
        mode: LockMode,
        patience: Duration,
    ) -> Result<Result<ServiceLock, OtherService>> {
        match self {
            Self::Sqlite(_) => Ok(Ok(ServiceLock::unneeded())),
            Self::Postgres(postgres) => postgres.lock_service(mode, patience).await,
        }
    }

    pub(crate) async fn notifications(&self, channel: &str) -> Result<Notifications> {
        match self {
            Self::Sqlite(_) => Err(Error::Inconsistent("SQLite has no notifications")),
            Self::Postgres(postgres) => postgres.notifications(channel).await,
        }
    }

    pub(crate) async fn copy_to(&self, path: &Path) -> Result<()> {
        match self {
            Self::Sqlite(sqlite) => sqlite.copy_to(path).await,
            Self::Postgres(_) => Err(Error::Inconsistent("only an SQLite database can be copied to a file")),
        }
    }

    pub(crate) async fn ping(&self) -> Result<()> {
        Ok(self.reader().ping().await?)
    }

    pub(crate) async fn close(self) {
        match self {
            Self::Sqlite(sqlite) => sqlite.close().await,
            Self::Postgres(postgres) => postgres.close().await,
        }
    }
}
