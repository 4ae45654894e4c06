//! SQLite: one connection for writes and a few for reads.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use grabd_migrations::Migrator;
use sea_orm::sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sea_orm::sqlx::{ConnectOptions, Connection};
use sea_orm::{
    ConnectionTrait, DatabaseConnection, DbBackend, SqlxError, SqlxSqliteConnector, Statement, TransactionTrait,
};
use sea_orm_migration::MigratorTrait;

use super::steps;
use super::transaction::{Transaction, Tx};
use super::writer::Writer;
use crate::error::connection_error;
use crate::{Error, Result};

/// Maximum wait for another writing process, such as an operator's command.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Reads are short and the target machines have two to four cores: more connections would only contend.
const READERS: u32 = 4;
/// Prepared statements cached per connection. The store has fewer: some 150, and some 60 for batches of different sizes.
const STATEMENT_CACHE: usize = 256;
/// Maximum size of the write connection's page cache, as the pragma `cache_size` counts it: negative, in KiB. With a long queue,
/// the first grab of a team is on other pages than its last one. With SQLite's default of 2 MiB, 14 pages are read from the
/// file again for each grab, with this and `CHECKPOINT_PAGES` three. Only used pages take memory.
const WRITER_CACHE: &str = "-32768";
/// Pages in the write-ahead log after which they are copied to the database: 16 MiB. A page that has changed several times is
/// copied once, so a seventh less is written than with SQLite's default of 1,000.
const CHECKPOINT_PAGES: &str = "4000";

#[derive(Clone, Debug)]
pub(crate) struct Sqlite {
    writer: Writer,
    /// The pool with the single write connection, which the writer task acquires for each batch.
    write_pool: DatabaseConnection,
    /// Read connections. An in-memory database uses the write pool, because it cannot be shared between connections.
    read_pool: DatabaseConnection,
}

impl Sqlite {
    pub(crate) async fn open(url: &str) -> Result<Self> {
        let options: SqliteConnectOptions = url.parse().map_err(connection_error)?;
        let options = options
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // A confirmed commit must survive a power failure: it may have spent a credit.
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(BUSY_TIMEOUT)
            .statement_cache_capacity(STATEMENT_CACHE)
            .disable_statement_logging();
        let file = file(url)?;
        let in_memory = file.is_none();
        if let Some(file) = &file {
            create_private(file)?;
        }
        let writing = options.clone().pragma("cache_size", WRITER_CACHE).pragma("wal_autocheckpoint", CHECKPOINT_PAGES);
        let write_pool = connect(writing, writers()).await?;
        let read_pool = match in_memory {
            true => write_pool.clone(),
            false => connect(options.pragma("query_only", "ON"), pool(READERS)).await?,
        };
        Ok(Self { writer: Writer::start(write_pool.clone()), write_pool, read_pool })
    }

    pub(crate) async fn write<T: Transaction>(&self, transaction: T) -> Result<T::Outcome> {
        self.writer.write(transaction).await
    }

    pub(super) const fn writer(&self) -> &Writer {
        &self.writer
    }

    pub(crate) const fn readers(&self) -> &DatabaseConnection {
        &self.read_pool
    }

    pub(crate) async fn snapshot(&self) -> Result<Tx> {
        Ok(self.read_pool.begin().await?)
    }

    pub(crate) async fn migrate(&self) -> Result<()> {
        steps::check(&self.write_pool).await?;
        Migrator::up(&self.write_pool, None).await?;
        steps::record(&self.write_pool).await
    }

    /// Copies a consistent state of the database to a new file. Other processes may write meanwhile.
    pub(crate) async fn copy_to(&self, path: &Path) -> Result<()> {
        create_private(path)?;
        let text = path.to_str().ok_or(Error::Inconsistent("the path of the copy is not UTF-8"))?;
        let copy = Statement::from_sql_and_values(DbBackend::Sqlite, "VACUUM INTO ?", [text.into()]);
        self.write_pool.execute_raw(copy).await?;
        let copied = std::fs::File::open(path).and_then(|file| file.sync_all());
        copied.map_err(|error| connection_error(SqlxError::Io(error)))
    }

    pub(crate) async fn close(self) {
        self.writer.close().await;
        // Readers first: the last connection to close checkpoints the write-ahead log, which needs write access.
        for pool in [&self.read_pool, &self.write_pool] {
            if let Err(error) = pool.close_by_ref().await {
                tracing::warn!(%error, "a database pool did not close cleanly");
            }
        }
    }
}

/// The file, unless the database is in memory.
pub(super) fn file(url: &str) -> Result<Option<PathBuf>> {
    if url.contains(":memory:") || url.contains("mode=memory") {
        return Ok(None);
    }
    let options: SqliteConnectOptions = url.parse().map_err(connection_error)?;
    Ok(Some(options.get_filename().to_owned()))
}

/// The pool of the single write connection.
fn writers() -> SqlitePoolOptions {
    pool(1).after_release(|connection, _| {
        Box::pin(async move {
            // SQLite may roll back the whole transaction on its own, for example when the disk is full. sqlx does not
            // notice and would turn the next BEGIN into a savepoint, so such a connection is discarded. The ping ensures
            // that its queued commands have completed. Reads cannot cause that, and need no second round trip.
            connection.ping().await?;
            Ok(!connection.is_in_transaction())
        })
    })
}

fn pool(connections: u32) -> SqlitePoolOptions {
    SqlitePoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(BUSY_TIMEOUT * 2)
        // File connections do not break, and closing an in-memory database loses its data.
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
}

async fn connect(options: SqliteConnectOptions, pool: SqlitePoolOptions) -> Result<DatabaseConnection> {
    let pool = pool.connect_with(options).await.map_err(connection_error)?;
    Ok(SqlxSqliteConnector::from_sqlx_sqlite_pool(pool))
}

/// Creates the file before SQLite does, because SQLite would make it readable by everybody. The `-wal` and `-shm` files
/// get the same mode.
fn create_private(path: &Path) -> Result<()> {
    let created = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
    created.map(drop).map_err(|error| connection_error(SqlxError::Io(error)))
}
