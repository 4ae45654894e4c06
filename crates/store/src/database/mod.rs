//! The two databases behind one face: reads from a pool, writes as whole transactions.

mod postgres;
mod sqlite;
mod writer;

use std::fmt;
use std::future::Future;

use grabd_migrations::Migrator;
use sea_orm::{DatabaseConnection, DatabaseTransaction, EntityTrait};
use sea_orm_migration::{MigratorTrait, seaql_migrations};

use crate::{Error, Result};
use postgres::Postgres;
use sqlite::Sqlite;

/// What a change is written through.
pub(crate) type Tx = DatabaseTransaction;

/// One change: all of it happens, or nothing.
pub(crate) trait Transaction: Send + Sync + 'static {
    /// What the change came to. "No" is an outcome too; an error undoes the change.
    type Outcome: Send + 'static;

    /// The statements. May be run again after it was undone, so it must not remember anything.
    fn apply(&self, tx: &Tx) -> impl Future<Output = Result<Self::Outcome>> + Send;
}

/// Which database it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One file, one process that serves.
    Sqlite,
    /// A server, shared by any number of processes.
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

    /// Runs a change to its end and commits it.
    pub(crate) async fn write<T: Transaction>(&self, transaction: T) -> Result<T::Outcome> {
        match self {
            Self::Sqlite(sqlite) => sqlite.write(transaction).await,
            Self::Postgres(postgres) => postgres.write(&transaction).await,
        }
    }

    /// Where single statements read what is committed.
    pub(crate) const fn reader(&self) -> &DatabaseConnection {
        match self {
            Self::Sqlite(sqlite) => sqlite.readers(),
            Self::Postgres(postgres) => postgres.pool(),
        }
    }

    /// A transaction that only reads, and sees one moment in all its statements.
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
        let applied = match seaql_migrations::Entity::find().all(self.reader()).await.map_err(Error::from) {
            Ok(applied) => applied,
            // Not even the list of steps is there.
            Err(Error::Schema(_)) => return Ok(false),
            Err(error) => return Err(error),
        };
        Ok(Migrator::migrations().iter().all(|step| applied.iter().any(|row| row.version == step.name())))
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
