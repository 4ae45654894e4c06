//! The limits that operators override for a team, and the index that finds accounts that were never verified.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, text};
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
        let mut team = ColumnDef::new("team_id");
        if manager.get_database_backend() == DbBackend::Sqlite {
            team.binary_len(16);
        } else {
            team.uuid();
        }
        let limits = Table::create()
            .table("team_limit")
            .col(team.not_null())
            .col(text("name")) // of the limit
            .col(big_integer("value").check(Expr::cust("value >= 0")))
            .col(big_integer("changed_at"))
            .primary_key(Index::create().col("team_id").col("name"))
            .foreign_key(ForeignKey::create().from("team_limit", "team_id").to("team", "id"))
            .take();
        manager.create_table(limits).await?;
        // From now on the limit is in the new table only.
        let existing = "INSERT INTO team_limit (team_id, name, value, changed_at) \
            SELECT id, 'async_queue', async_queue_limit, created_at FROM team \
            WHERE async_queue_limit IS NOT NULL AND deleted_at IS NULL";
        manager.get_connection().execute_unprepared(existing).await?;

        let unverified = Index::create()
            .name("user_unverified")
            .table("user")
            .col("created_at")
            .col("id")
            .and_where(Expr::cust("verified_at IS NULL"))
            .take();
        manager.create_index(unverified).await
    }
}
