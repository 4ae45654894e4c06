//! PostgreSQL: a connection pool. Every change is a transaction at READ COMMITTED.

use std::time::Duration;

use grabd_migrations::Migrator;
use sea_orm::sqlx::ConnectOptions;
use sea_orm::sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sea_orm::{
    AccessMode, ConnectionTrait, DatabaseConnection, DbErr, IsolationLevel, SqlxError, SqlxPostgresConnector,
    TransactionTrait,
};
use sea_orm_migration::MigratorTrait;

use super::apply;
use super::notifications::Notifications;
use super::server::{Server, reason};
use super::server_addresses::servers;
use super::service_lock::{LockMode, OtherService, ServiceLock};
use super::steps;
use super::transaction::{Transaction, Tx};
use crate::Result;
use crate::error::connection_error;

/// Maximum wait for a connection without the timeouts of the job path.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// Statement timeout of operator reports over all rows.
const REPORT_TIMEOUT: &str = "60s";
/// Prepared statements cached per connection. The store has fewer: some 150, and some 60 for batches of different sizes.
const STATEMENT_CACHE: usize = 256;
/// Key of the advisory lock for migrations: an arbitrary number that no other program uses.
const MIGRATION_LOCK: i64 = 0x6772_6162_6421;

#[derive(Clone, Debug)]
pub(crate) struct Postgres {
    server: Server,
}

impl Postgres {
    pub(crate) async fn open(url: &str) -> Result<Self> {
        let options = |server: PgConnectOptions| {
            server.application_name("grabd").statement_cache_capacity(STATEMENT_CACHE).disable_statement_logging()
        };
        let servers = servers(url)?.into_iter().map(options).collect();
        Ok(Self { server: Server::connect(servers).await? })
    }

    /// If the caller is dropped, the change is rolled back, unless its commit was already sent.
    pub(crate) async fn write<T: Transaction>(&self, transaction: &T) -> Result<T::Outcome> {
        apply::write(&self.server, transaction).await
    }

    pub(super) const fn server(&self) -> &Server {
        &self.server
    }

    /// Reads. If the connection is lost, reads again on another one.
    pub(crate) async fn read<T, F>(&self, read: impl Fn(DatabaseConnection) -> F) -> Result<T, DbErr>
    where
        F: Future<Output = Result<T, DbErr>>,
    {
        self.server.run_repeatable(read).await
    }

    /// Does something that must not be repeated.
    pub(crate) async fn execute<T, F>(&self, execute: impl FnOnce(DatabaseConnection) -> F) -> Result<T, DbErr>
    where
        F: Future<Output = Result<T, DbErr>>,
    {
        self.server.run(async { execute(self.server.pool()).await }).await
    }

    pub(crate) async fn snapshot(&self) -> Result<Tx> {
        let begin = |pool: DatabaseConnection| async move {
            let (isolation, access) = (IsolationLevel::RepeatableRead, AccessMode::ReadOnly);
            let tx = pool.begin_with_config(Some(isolation), Some(access)).await?;
            tx.execute_unprepared(&format!("SET LOCAL statement_timeout = '{REPORT_TIMEOUT}'")).await?;
            Ok(tx)
        };
        Ok(self.server.run_repeatable::<_, DbErr, _>(begin).await?)
    }

    /// Uses a connection without the job path timeouts. The advisory lock admits one process at a time.
    pub(crate) async fn migrate(&self) -> Result<()> {
        let connection = connect(self.server.options()).await?;
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
        wait: Duration,
    ) -> Result<Result<ServiceLock, OtherService>> {
        ServiceLock::acquire(&self.server, mode, wait).await
    }

    pub(crate) async fn notifications(&self, channel: &str) -> Result<Notifications> {
        Notifications::open(self.server.options().application_name("grabd hints"), channel).await
    }

    pub(crate) async fn close(self) {
        self.server.close().await;
    }
}

/// One connection without the timeouts of the job path.
async fn connect(options: PgConnectOptions) -> Result<DatabaseConnection> {
    let pool = PgPoolOptions::new().max_connections(1).acquire_timeout(ACQUIRE_TIMEOUT);
    let pool = match pool.connect_with(options.clone()).await {
        Err(SqlxError::PoolTimedOut) => Err(reason(&options).await),
        connected => connected,
    };
    Ok(SqlxPostgresConnector::from_sqlx_postgres_pool(pool.map_err(connection_error)?))
}
