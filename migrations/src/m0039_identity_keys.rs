//! The keys with which the service signs its requests to captured sites.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, big_integer_null, integer, text};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    /// A transaction, because a partially applied step could not be applied again.
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let keys = Table::create()
            .table("identity_keys")
            // Counts the keys, so that two processes cannot make the same one.
            .col(integer("number").primary_key())
            .col(text("key_id")) // the thumbprint of the public key
            .col(ColumnDef::new("secret").blob().not_null().take()) // encrypted
            .col(big_integer("created_at"))
            .col(big_integer("used_from"))
            .col(big_integer_null("removed_at")) // from then on, it is not published; NULL: it is the last key
            .take();
        manager.create_table(keys).await
    }
}
