//! PostgreSQL: a pool; every change is a transaction of its own, READ COMMITTED.

use std::sync::Arc;
use std::time::Duration;

use grabd_migrations::Migrator;
use sea_orm::sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sea_orm::sqlx::{ConnectOptions, Connection};
use sea_orm::{
    AccessMode, ConnectionTrait, DatabaseConnection, DbErr, IsolationLevel, RuntimeErr, SqlxError,
    SqlxPostgresConnector, TransactionTrait,
};
use sea_orm_migration::MigratorTrait;

use super::{Transaction, Tx};
use crate::{Error, Result};

/// Connections of one process: the server shares a hundred, and a transaction holds one for some milliseconds.
const CONNECTIONS: u32 = 16;
/// How long anybody waits for a connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// For how long a connection at rest is taken to be alive.
const TRUSTED_REST: Duration = Duration::from_secs(5);
/// No statement of the job path takes longer, locks included; one that does holds up the vacuum of the job table.
const STATEMENT_TIMEOUT: &str = "5s";
/// A process that stops inside a transaction must not keep its locks.
const IDLE_IN_TRANSACTION_TIMEOUT: &str = "10s";
/// What an operator's report over all rows may take.
const REPORT_TIMEOUT: &str = "60s";
/// How often a change is run when the server ends it because of what others do at the same time.
const ATTEMPTS: u32 = 5;
/// Statements kept prepared on each connection; the store has fewer.
const STATEMENTS: usize = 128;
/// Any number no other program uses: the lock under which the schema is changed.
const MIGRATION_LOCK: i64 = 0x6772_6162_6421;

#[derive(Clone, Debug)]
pub(crate) struct Postgres {
    pool: DatabaseConnection,
    options: Arc<PgConnectOptions>,
}

impl Postgres {
    pub(crate) async fn open(url: &str) -> Result<Self> {
        let options: PgConnectOptions = url.parse().map_err(connecting)?;
        let options =
            options.application_name("grabd").statement_cache_capacity(STATEMENTS).disable_statement_logging();
        let hot = options.clone().options([
            ("statement_timeout", STATEMENT_TIMEOUT),
            ("idle_in_transaction_session_timeout", IDLE_IN_TRANSACTION_TIMEOUT),
        ]);
        Ok(Self { pool: connect(hot, CONNECTIONS).await?, options: options.into() })
    }

    /// When the caller goes away the change is undone, unless its commit is already on the way.
    pub(crate) async fn write<T: Transaction>(&self, transaction: &T) -> Result<T::Outcome> {
        let mut attempt = 1;
        loop {
            match self.try_write(transaction).await {
                Err(error) if error.is_transient() && attempt < ATTEMPTS => attempt += 1,
                answer => return answer,
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
                // If even this fails the connection is lost, and the server rolls back by itself.
                drop(tx.rollback().await);
                Err(error)
            }
        }
    }

    pub(crate) const fn pool(&self) -> &DatabaseConnection {
        &self.pool
    }

    pub(crate) async fn snapshot(&self) -> Result<Tx> {
        let moment = (Some(IsolationLevel::RepeatableRead), Some(AccessMode::ReadOnly));
        let tx = self.pool.begin_with_config(moment.0, moment.1).await?;
        tx.execute_unprepared(&format!("SET LOCAL statement_timeout = '{REPORT_TIMEOUT}'")).await?;
        Ok(tx)
    }

    /// On a connection without the hot timeouts, and one process at a time.
    pub(crate) async fn migrate(&self) -> Result<()> {
        let connection = connect((*self.options).clone(), 1).await?;
        connection.execute_unprepared(&format!("SELECT pg_advisory_lock({MIGRATION_LOCK})")).await?;
        let applied = Migrator::up(&connection, None).await;
        // Closing the connection releases the lock.
        connection.close().await?;
        Ok(applied?)
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
        // Only connections that have rested are asked whether they are still there: asking costs a round trip.
        .test_before_acquire(false)
        .before_acquire(|connection, rest| {
            Box::pin(async move {
                if rest.idle_for >= TRUSTED_REST {
                    connection.ping().await?;
                }
                Ok(true)
            })
        })
        .connect_with(options)
        .await
        .map_err(connecting)?;
    Ok(SqlxPostgresConnector::from_sqlx_postgres_pool(pool))
}

fn connecting(error: SqlxError) -> Error {
    DbErr::Conn(RuntimeErr::SqlxError(error.into())).into()
}
