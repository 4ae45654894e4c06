//! The account of each job, for the fair queue, and the cause of each failure.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{boolean, small_integer_null};
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
        let mut account = ColumnDef::new("account_id"); // NULL: written by an earlier version; the account is the team
        if sqlite {
            account.binary_len(16)
        } else {
            account.uuid()
        };
        let paid = boolean("paid").default(false).take(); // the account has paid for credits
        let cause = small_integer_null("error_cause")
            .check(Expr::cust("error_cause IN (0, 1, 2)")) // 0 request, 1 target, 2 service; NULL: that of the code
            .take();
        // SQLite adds one column per statement.
        for (table, column) in [("job", account), ("job", paid), ("grab", cause)] {
            manager.alter_table(Table::alter().table(table).add_column(column).take()).await?;
        }
        manager.get_connection().execute_unprepared("UPDATE job SET account_id = team_id").await?;
        let index = Index::create().name("job_account").table("job").col("account_id").col("class").col("vt").take();
        manager.create_index(index).await
    }
}
