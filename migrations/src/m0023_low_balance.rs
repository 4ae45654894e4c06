//! Alerts about low balances.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{integer, small_integer};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    /// A transaction, because a partially applied step could not be applied again.
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // In credits. 0: no alerts.
        let below = integer("alert_below").default(100).check(Expr::cust("alert_below >= 0")).take();
        // 1 at first, because a balance that was never above the limit has not fallen below it.
        let is_low = small_integer("is_balance_low").default(1).check(Expr::cust("is_balance_low IN (0, 1)")).take();
        // One by one, because SQLite adds one column at a time.
        for column in [below, is_low] {
            manager.alter_table(Table::alter().table("team").add_column(column).take()).await?;
        }
        Ok(())
    }
}
