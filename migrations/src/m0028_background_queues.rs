//! Queues of background work that one team could fill: why a webhook message was never sent, and which images are deleted
//! together with many others.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{small_integer, small_integer_null};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    /// A transaction, because a partially applied step could not be applied again.
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // Why the message is not sent. 0: too many of the account were open. NULL: it is.
        let not_sent = small_integer_null("not_sent").check(Expr::cust("not_sent IN (0)")).take();
        manager.alter_table(Table::alter().table("delivery").add_column(not_sent).take()).await?;

        // 1: deleted by a retention or with its team. 0: on request, which does not wait for those.
        let bulk = small_integer("bulk").default(0).check(Expr::cust("bulk IN (0, 1)")).take();
        manager.alter_table(Table::alter().table("image_gc").add_column(bulk).take()).await?;
        let turn = Index::create().name("image_gc_turn").table("image_gc").col("bulk").col("not_before").take();
        manager.create_index(turn).await
    }
}
