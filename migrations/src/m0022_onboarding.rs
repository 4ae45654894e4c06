//! Members who do not want to see the first steps of their team.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::big_integer_null;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    /// A transaction, because a partially applied step could not be applied again.
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // NULL: they are shown, as long as some are left.
        let hidden = big_integer_null("first_steps_hidden_at").take();
        manager.alter_table(Table::alter().table("member").add_column(hidden).take()).await
    }
}
