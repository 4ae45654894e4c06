//! Roles that only see, and that only pay. Who gets the alerts about the balance.

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
        // 0 owner, 1 member, 2 viewer, 3 billing. A column that replaces the former one, because SQLite cannot change its
        // check, and deletes what depends on a table that is created again. SQLite needs a default for a column of existing
        // rows: the role that can change nothing.
        let role = small_integer("new_role").default(2).check(Expr::cust("new_role IN (0, 1, 2, 3)")).take();
        for table in ["member", "invitation"] {
            manager.alter_table(Table::alter().table(table).add_column(role.clone()).take()).await?;
            let copy = format!("UPDATE {table} SET new_role = role");
            manager.get_connection().execute_unprepared(&copy).await?;
            manager.alter_table(Table::alter().table(table).drop_column("role").take()).await?;
            manager.alter_table(Table::alter().table(table).rename_column("new_role", "role").take()).await?;
        }
        // 1: the member gets the alerts about the balance. If nobody does, the owners get them.
        let gets_alerts = small_integer("gets_alerts").default(0).check(Expr::cust("gets_alerts IN (0, 1)")).take();
        manager.alter_table(Table::alter().table("member").add_column(gets_alerts).take()).await
    }
}
