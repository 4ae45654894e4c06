//! Single statements outside of a transaction.

use sea_orm::prelude::async_trait;
use sea_orm::{ConnectionTrait, DatabaseConnection, DbBackend, DbErr, ExecResult, QueryResult, Statement};

use super::{Database, Engine};

#[async_trait::async_trait]
impl ConnectionTrait for Database {
    fn get_database_backend(&self) -> DbBackend {
        match &self.engine {
            Engine::Sqlite(_) => DbBackend::Sqlite,
            Engine::Postgres(_) => DbBackend::Postgres,
        }
    }

    async fn execute_raw(&self, statement: Statement) -> Result<ExecResult, DbErr> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.readers().execute_raw(statement).await,
            Engine::Postgres(postgres) => {
                postgres.execute(|pool| async move { pool.execute_raw(statement).await }).await
            }
        }
    }

    async fn execute_unprepared(&self, sql: &str) -> Result<ExecResult, DbErr> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.readers().execute_unprepared(sql).await,
            Engine::Postgres(postgres) => {
                postgres.execute(|pool| async move { pool.execute_unprepared(sql).await }).await
            }
        }
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.readers().query_one_raw(statement).await,
            Engine::Postgres(postgres) => {
                let read = |pool: DatabaseConnection| {
                    let statement = statement.clone();
                    async move { pool.query_one_raw(statement).await }
                };
                postgres.read(read).await
            }
        }
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.readers().query_all_raw(statement).await,
            Engine::Postgres(postgres) => {
                let read = |pool: DatabaseConnection| {
                    let statement = statement.clone();
                    async move { pool.query_all_raw(statement).await }
                };
                postgres.read(read).await
            }
        }
    }
}
