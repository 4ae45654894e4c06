//! The processes of a cluster, and which of them each renderer session belongs to.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, integer, text};
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
        let sqlite = manager.get_database_backend() == DbBackend::Sqlite;
        let uuid = |name: &'static str| {
            let mut column = ColumnDef::new(name);
            if sqlite {
                column.binary_len(16);
            } else {
                column.uuid();
            }
            column.not_null().take()
        };
        let node = Table::create()
            .table("node")
            .col(uuid("id").primary_key())
            .col(text("role"))
            .col(big_integer("started_at")) // by the database's clock, like the next one
            .col(big_integer("heartbeat_at"))
            .col(text("version"))
            .col(text("address"))
            .col(integer("slots").check(Expr::cust("slots >= 0")))
            .take();
        manager.create_table(node).await?;
        let session = Table::create()
            .table("node_session")
            .col(uuid("session_id").primary_key())
            .col(uuid("node_id"))
            .foreign_key(
                ForeignKey::create()
                    .from("node_session", "node_id")
                    .to("node", "id")
                    .on_delete(ForeignKeyAction::Cascade),
            )
            .take();
        manager.create_table(session).await?;
        let of_node = Index::create().name("node_session_node").table("node_session").col("node_id").take();
        manager.create_index(of_node).await
    }
}
