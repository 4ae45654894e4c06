//! Requests per minute of teams, counted across the processes of a cluster.

use sea_orm_migration::prelude::*;
use sea_orm_migration::sea_orm::DbBackend;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    /// A transaction, because a partially applied step could not be applied again.
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // Only processes on PostgreSQL use it. Unlogged: a crash of the server empties it, which costs one minute of
        // limits, and no write waits for the disk.
        let is_sqlite = manager.get_database_backend() == DbBackend::Sqlite;
        let (unlogged, uuid) = if is_sqlite { ("", "blob") } else { ("UNLOGGED", "uuid") };
        // `tat` is the theoretical arrival time of GCRA in microseconds of the database's clock, and `granted` what the
        // last request for a lease got.
        let create = format!(
            "CREATE {unlogged} TABLE rate_cell (team_id {uuid} NOT NULL, env smallint NOT NULL, tat bigint NOT NULL, \
             granted bigint NOT NULL CHECK (granted >= 0), PRIMARY KEY (team_id, env))"
        );
        manager.get_connection().execute_unprepared(&create).await?;
        let unused = Index::create().name("rate_cell_unused").table("rate_cell").col("tat").take();
        manager.create_index(unused).await
    }
}
