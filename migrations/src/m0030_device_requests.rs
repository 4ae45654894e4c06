//! Requests of the device authorization grant (RFC 8628), until they are answered or expire.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, big_integer_null, small_integer_null, text};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let table = Table::create()
            .table("oauth_device")
            .col(ColumnDef::new("hash").var_binary(32).not_null().primary_key().take()) // SHA-256 of the device code
            .col(text("user_code").unique_key())
            .col(text("request")) // the request, which waits for the decision of a user
            .col(big_integer("expires_at"))
            .col(big_integer_null("polled_at")) // when the app asked last
            .col(small_integer_null("decision")) // 0 denied, 1 allowed
            .take();
        manager.create_table(table).await?;
        let expiry = Index::create().name("oauth_device_expiry").table("oauth_device").col("expires_at").take();
        manager.create_index(expiry).await
    }
}
