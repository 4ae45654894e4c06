//! Verified e-mail addresses, and the devices that people sign in with.
//!
//! Times are milliseconds since the epoch. Existing accounts count as verified.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, big_integer_null, boolean};
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
        // When the person proved that they read mail for the address; NULL: not yet.
        let verified = Table::alter().table("user").add_column(big_integer_null("verified_at")).take();
        manager.alter_table(verified).await?;
        let existing = Query::update().table("user").value("verified_at", Expr::col("created_at")).take();
        manager.execute(existing).await?;
        // Whether the link was sent by e-mail only, so that using it proves that the person reads the address's mail.
        let mailed = Table::alter().table("invitation").add_column(boolean("mailed").default(false)).take();
        manager.alter_table(mailed).await?;

        let verification = Table::create()
            .table("email_verification")
            .col(hash("hash").primary_key())
            .col(user_id(manager))
            .col(big_integer("expires_at"))
            .foreign_key(&mut of_user("email_verification"))
            .take();
        manager.create_table(verification).await?;
        index(manager, "email_verification_user", "email_verification", &["user_id", "expires_at"]).await?;
        index(manager, "email_verification_expiry", "email_verification", &["expires_at"]).await?;

        let device = Table::create()
            .table("device")
            .col(hash("hash")) // SHA-256 of the browser's token, which several people may share
            .col(user_id(manager))
            .col(hash("network")) // SHA-256 of person and network of the last sign-in
            .col(big_integer("created_at"))
            .col(big_integer("seen_at")) // the last sign-in
            .primary_key(Index::create().col("user_id").col("hash"))
            .foreign_key(&mut of_user("device"))
            .take();
        manager.create_table(device).await?;
        index(manager, "device_hash", "device", &["hash"]).await?;
        index(manager, "device_age", "device", &["seen_at"]).await
    }
}

/// A UUID column: native on PostgreSQL, 16 bytes on SQLite.
fn user_id(manager: &SchemaManager) -> ColumnDef {
    let mut column = ColumnDef::new("user_id");
    if manager.get_database_backend() == DbBackend::Sqlite {
        column.binary_len(16);
    } else {
        column.uuid();
    }
    column.not_null().take()
}

/// The SHA-256 of a secret. The secret itself is not stored.
fn hash(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).var_binary(32).not_null().take()
}

fn of_user(table: &'static str) -> ForeignKeyCreateStatement {
    ForeignKey::create().from(table, "user_id").to("user", "id").on_delete(ForeignKeyAction::Cascade).take()
}

async fn index(
    manager: &SchemaManager<'_>,
    name: &'static str,
    table: &'static str,
    columns: &[&'static str],
) -> Result<(), DbErr> {
    let mut index = Index::create().name(name).table(table).take();
    for column in columns {
        index.col(*column);
    }
    manager.create_index(index).await
}
