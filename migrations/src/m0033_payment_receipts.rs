//! The payment provider's receipts of payments.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, text};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // A receipt may be reported before its payment, so there need not be a lot.
        let table = Table::create()
            .table("payment_receipt")
            .col(text("source_ref").primary_key()) // of the lot
            .col(text("url")) // of the page with the receipt
            .col(big_integer("created_at"))
            .take();
        manager.create_table(table).await?;
        let age = Index::create().name("payment_receipt_age").table("payment_receipt").col("created_at").take();
        manager.create_index(age).await
    }
}
