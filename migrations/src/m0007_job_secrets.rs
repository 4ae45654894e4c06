//! Encrypted secret options of open grabs: request headers, cookies and passwords. They are in the job, because it is
//! deleted when the grab ends.

use sea_orm_migration::prelude::*;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let column = Table::alter().table("job").add_column(ColumnDef::new("secrets").blob()).take();
        manager.alter_table(column).await
    }
}
