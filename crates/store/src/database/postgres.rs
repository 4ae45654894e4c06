//! PostgreSQL: a connection pool. Every change is a transaction at READ COMMITTED.

use std::sync::Arc;
use std::time::Duration;

use grabd_migrations::Migrator;
use sea_orm::sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sea_orm::sqlx::{ConnectOptions, Connection};
use sea_orm::{
    AccessMode, ConnectionTrait, DatabaseConnection, IsolationLevel, SqlxPostgresConnector, TransactionTrait,
};
use sea_orm_migration::MigratorTrait;

use super::notifications::Notifications;
use super::service_lock::{LockMode, OtherService, ServiceLock};
use super::steps;
use super::transaction::{Transaction, Tx};
use crate::Result;
use crate::error::connection_error;

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
/// Statement timeout of operator reports over all rows.
const REPORT_TIMEOUT: &str = "60s";
/// How often a change is tried when the server aborts it because of concurrent transactions.
const ATTEMPTS: u32 = 5;
/// Prepared statements cached per connection. The store has fewer.
const STATEMENT_CACHE: usize = 128;
/// Key of the advisory lock for migrations: an arbitrary number that no other program uses.
const MIGRATION_LOCK: i64 = 0x6772_6162_6421;

#[derive(Clone, Debug)]
pub(crate) struct Postgres {
    pool: DatabaseConnection,
    options: Arc<PgConnectOptions>,
}

impl Postgres {
    pub(crate) async fn open(url: &str) -> Result<Self> {
        let options: PgConnectOptions = url.parse().map_err(connection_error)?;
        let options =
            options.application_name("grabd").statement_cache_capacity(STATEMENT_CACHE).disable_statement_logging();
        let job_path_options = options.clone().options([
            ("statement_timeout", STATEMENT_TIMEOUT),
            ("idle_in_transaction_session_timeout", IDLE_IN_TRANSACTION_TIMEOUT),
        ]);
        Ok(Self { pool: connect(job_path_options, CONNECTIONS).await?, options: options.into() })
    }

    /// If the caller is dropped, the change is rolled back, unless its commit was already sent.
    pub(crate) async fn write<T: Transaction>(&self, transaction: &T) -> Result<T::Outcome> {
        let mut attempt = 1;
        loop {
            match self.try_write(transaction).await {
                Err(error) if error.is_transient() && attempt < ATTEMPTS => attempt += 1,
                result => return result,
            }
        }
    }

    async fn try_write<T: Transaction>(&self, transaction: &T) -> Result<T::Outcome> {
        let tx = self.pool.begin().await?;
        match transaction.apply(&tx).await {
            Ok(outcome) => {
                tx.commit().await?;
                Ok(outcome)
            }
            Err(error) => {
                // If the rollback fails, the connection is lost and the server rolls back.
                drop(tx.rollback().await);
                Err(error)
            }
        }
    }

    pub(crate) const fn pool(&self) -> &DatabaseConnection {
        &self.pool
    }

    pub(crate) async fn snapshot(&self) -> Result<Tx> {
        let snapshot_mode = (Some(IsolationLevel::RepeatableRead), Some(AccessMode::ReadOnly));
        let tx = self.pool.begin_with_config(snapshot_mode.0, snapshot_mode.1).await?;
        tx.execute_unprepared(&format!("SET LOCAL statement_timeout = '{REPORT_TIMEOUT}'")).await?;
        Ok(tx)
    }

    /// Uses a connection without the job path timeouts. The advisory lock admits one process at a time.
    pub(crate) async fn migrate(&self) -> Result<()> {
        let connection = connect((*self.options).clone(), 1).await?;
        connection.execute_unprepared(&format!("SELECT pg_advisory_lock({MIGRATION_LOCK})")).await?;
        let applied = async {
            steps::check(&connection).await?;
            Migrator::up(&connection, None).await?;
            steps::record(&connection).await
        };
        let applied = applied.await;
        // Closing the connection releases the lock.
        connection.close().await?;
        applied
    }

    pub(crate) async fn lock_service(
        &self,
        mode: LockMode,
        patience: Duration,
    ) -> Result<Result<ServiceLock, OtherService>> {
        ServiceLock::acquire(&self.options, mode, patience).await
    }

    pub(crate) async fn notifications(&self, channel: &str) -> Result<Notifications> {
        Notifications::open((*self.options).clone().application_name("grabd hints"), channel).await
    }

    pub(crate) async fn close(self) {
        if let Err(error) = self.pool.close_by_ref().await {
            tracing::warn!(%error, "the database pool did not close cleanly");
        }
    }
}

async fn connect(options: PgConnectOptions, connections: u32) -> Result<DatabaseConnection> {
    let pool = PgPoolOptions::new()
        .max_connections(connections)
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
        .connect_with(options)
        .await
        .map_err(connection_error)?;
    Ok(SqlxPostgresConnector::from_sqlx_postgres_pool(pool))
}
