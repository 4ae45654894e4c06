//! The keys that sign evidence of captures.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, big_integer_null, text};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let table = Table::create()
            .table("evidence_keys")
            .col(text("id").primary_key()) // the thumbprint of the public key
            .col(ColumnDef::new("public_key").blob().not_null())
            .col(ColumnDef::new("private_key").blob()) // encrypted; NULL: retired
            .col(big_integer("created_at"))
            .col(big_integer_null("retired_at")) // NULL: in use
            .check(Expr::cust("(private_key IS NULL) = (retired_at IS NOT NULL)"))
            .take();
        manager.create_table(table).await
    }
}
