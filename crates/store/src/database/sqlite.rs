//! SQLite: one connection that writes, a few that read beside it.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use grabd_migrations::Migrator;
use sea_orm::sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sea_orm::sqlx::{ConnectOptions, Connection};
use sea_orm::{DatabaseConnection, DbErr, RuntimeErr, SqlxError, SqlxSqliteConnector, TransactionTrait};
use sea_orm_migration::MigratorTrait;

use super::writer::Writer;
use super::{Transaction, Tx};
use crate::{Error, Result};

/// Another process, such as an operator's command, may write at the same time: we wait for it.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Reads are short and there are two cores to four: more connections would only contend.
const READERS: u32 = 4;
/// Statements kept prepared on each connection; the store has fewer.
const STATEMENTS: usize = 128;

#[derive(Clone, Debug)]
pub(crate) struct Sqlite {
    writer: Writer,
    /// The pool with the one writing connection. The writer task takes it for each batch.
    writing: DatabaseConnection,
    /// In memory this is the same pool: there is no second connection to the same memory.
    reading: DatabaseConnection,
}

impl Sqlite {
    pub(crate) async fn open(url: &str) -> Result<Self> {
        let options: SqliteConnectOptions = url.parse().map_err(connecting)?;
        let options = options
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // A commit that was answered survives a power cut: it may have spent a credit.
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(BUSY_TIMEOUT)
            .statement_cache_capacity(STATEMENTS)
            .disable_statement_logging();
        let in_memory = url.contains(":memory:") || url.contains("mode=memory");
        if !in_memory {
            create_private(options.get_filename())?;
        }
        let writing = connect(options.clone(), 1).await?;
        let reading = match in_memory {
            true => writing.clone(),
            false => connect(options.pragma("query_only", "ON"), READERS).await?,
        };
        Ok(Self { writer: Writer::start(writing.clone()), writing, reading })
    }

    pub(crate) async fn write<T: Transaction>(&self, transaction: T) -> Result<T::Outcome> {
        self.writer.write(transaction).await
    }

    pub(crate) const fn readers(&self) -> &DatabaseConnection {
        &self.reading
    }

    pub(crate) async fn snapshot(&self) -> Result<Tx> {
        Ok(self.reading.begin().await?)
    }

    pub(crate) async fn migrate(&self) -> Result<()> {
        Ok(Migrator::up(&self.writing, None).await?)
    }

    pub(crate) async fn close(self) {
        self.writer.close().await;
        // Readers first: the last connection to close folds the write-ahead log into the file, and must be able to.
        for pool in [&self.reading, &self.writing] {
            if let Err(error) = pool.close_by_ref().await {
                tracing::warn!(%error, "a database pool did not close cleanly");
            }
        }
    }
}

async fn connect(options: SqliteConnectOptions, connections: u32) -> Result<DatabaseConnection> {
    let pool = SqlitePoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(BUSY_TIMEOUT * 2)
        // A file does not hang up, and a closed in-memory database is a lost one.
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
        .after_release(|connection, _| {
            Box::pin(async move {
                // SQLite ends the whole transaction by itself when, for example, the disk is full. The library does not
                // notice and would take the next BEGIN for a savepoint, so such a connection is thrown away. Its queued
                // commands are done once a ping is answered.
                connection.ping().await?;
                Ok(!connection.is_in_transaction())
            })
        })
        .connect_with(options)
        .await
        .map_err(connecting)?;
    Ok(SqlxSqliteConnector::from_sqlx_sqlite_pool(pool))
}

/// Creates the file before SQLite does, because SQLite would let everybody read it. Its siblings copy its mode.
fn create_private(path: &Path) -> Result<()> {
    let created = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
    created.map(drop).map_err(|error| connecting(SqlxError::Io(error)))
}

fn connecting(error: SqlxError) -> Error {
    DbErr::Conn(RuntimeErr::SqlxError(error.into())).into()
}
