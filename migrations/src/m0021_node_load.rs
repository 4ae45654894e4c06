//! How busy the renderers of each process are, for processes without renderers.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::integer;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    /// A transaction, because a partially applied step could not be applied again.
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // Slots that are idle, those of them that all accounts may use, and those that are kept for paying accounts. Then
        // the usual duration of a render, and of one for a paying account, in milliseconds.
        for name in ["idle", "open_idle", "kept", "render_ms", "paid_render_ms"] {
            let mut column = integer(name);
            let column = column.default(0).check(Expr::cust(format!("{name} >= 0"))).take();
            manager.alter_table(Table::alter().table("node").add_column(column).take()).await?;
        }
        Ok(())
    }
}
