//! Webhook messages about changes between two captures of a page.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::small_integer;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    /// A transaction, because a partially applied step could not be applied again.
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // 1 with event 0: the grab is done, and its image differs from the earlier one. A column of its own, because
        // SQLite cannot change the check of `event`, and the previous release reads no other events.
        let changed = small_integer("changed").default(0).check(Expr::cust("changed IN (0, 1)")).take();
        manager.alter_table(Table::alter().table("delivery").add_column(changed).take()).await?;
        // A grab that changed has both messages.
        manager.drop_index(Index::drop().name("delivery_once").table("delivery").to_owned()).await?;
        let once = Index::create()
            .name("delivery_once")
            .table("delivery")
            .col("grab_id")
            .col("endpoint_id")
            .col("event")
            .col("changed")
            .unique()
            .take();
        manager.create_index(once).await
    }
}
