//! A connection to the service's database, beside those of the service.

use std::path::Path;

use anyhow::{Context, Result};
use sea_orm::{ConnectOptions, ConnectionTrait, Database, DatabaseConnection, Statement, TryGetable};

/// Opens an SQLite database. Its one connection waits while the service writes.
pub(super) async fn connect(file: &Path) -> Result<DatabaseConnection> {
    let mut options = ConnectOptions::new(format!("sqlite://{}", file.display()));
    options.max_connections(1).sqlx_logging(false);
    let database = Database::connect(options).await?;
    database.execute_unprepared("PRAGMA busy_timeout = 30000").await?;
    Ok(database)
}

/// The first column of a query.
pub(super) async fn column<T: TryGetable>(database: &DatabaseConnection, query: &str) -> Result<Vec<T>> {
    let statement = Statement::from_string(database.get_database_backend(), query);
    let rows = database.query_all_raw(statement).await?;
    rows.iter().map(|row| Ok(row.try_get_by_index(0)?)).collect()
}

/// The result of a query that counts.
pub(super) async fn count(database: &DatabaseConnection, query: &str) -> Result<i64> {
    column(database, query).await?.pop().context("a count")
}
