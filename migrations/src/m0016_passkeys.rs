//! Passkeys (WebAuthn credentials), and the challenges that were answered.
//!
//! Since passkeys exist, `second_factor.secret` is empty for people with passkeys and without an authenticator app.
//! Times are milliseconds since the epoch.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, big_integer_null, string_len, text};
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
        // Deleted with the second factor that they are part of.
        let passkey = Table::create()
            .table("passkey")
            .col(id(manager, "id").primary_key().take())
            .col(id(manager, "user_id"))
            .col(ColumnDef::new("credential_id").var_binary(1023).not_null().take()) // chosen by the device
            .col(text("credential")) // the public key and what is known about the device, as JSON
            .col(big_integer("counter")) // signatures that the device says it has made; 0 if it does not count
            .col(string_len("name", 60))
            .col(big_integer("created_at"))
            .col(big_integer_null("last_used_at"))
            .foreign_key(
                ForeignKey::create()
                    .from("passkey", "user_id")
                    .to("second_factor", "user_id")
                    .on_delete(ForeignKeyAction::Cascade),
            )
            .take();
        manager.create_table(passkey).await?;
        let credential =
            Index::create().name("passkey_credential").table("passkey").col("credential_id").unique().take();
        manager.create_index(credential).await?;
        let person = Index::create().name("passkey_user").table("passkey").col("user_id").take();
        manager.create_index(person).await?;

        // A challenge is answered once. Rows are deleted when the challenge would have expired.
        let answered = Table::create()
            .table("answered_challenge")
            .col(ColumnDef::new("hash").var_binary(32).not_null().primary_key().take()) // SHA-256 of the challenge
            .col(big_integer("expires_at"))
            .take();
        manager.create_table(answered).await?;
        let expiry =
            Index::create().name("answered_challenge_expires_at").table("answered_challenge").col("expires_at").take();
        manager.create_index(expiry).await
    }
}

/// A UUID column: native on PostgreSQL, 16 bytes on SQLite.
fn id(manager: &SchemaManager, name: &'static str) -> ColumnDef {
    let mut column = ColumnDef::new(name);
    if manager.get_database_backend() == DbBackend::Sqlite {
        column.binary_len(16);
    } else {
        column.uuid();
    }
    column.not_null().take()
}
