//! A second factor for sign-in: the secret of an authenticator app, and recovery codes.
//!
//! Times are milliseconds since the epoch.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::big_integer;
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
        // A row exists exactly while the second factor is on.
        let factor = Table::create()
            .table("second_factor")
            .col(user_id(manager).primary_key().take())
            .col(ColumnDef::new("secret").blob().not_null().take()) // encrypted
            .col(big_integer("last_step")) // the time step (RFC 6238) of the last accepted code
            .col(big_integer("created_at"))
            .foreign_key(&mut cascade("second_factor", "user", "id"))
            .take();
        manager.create_table(factor).await?;

        // A code is deleted when it is used.
        let code = Table::create()
            .table("recovery_code")
            .col(user_id(manager))
            .col(ColumnDef::new("hash").var_binary(32).not_null().take()) // SHA-256 of the person and the code
            .primary_key(Index::create().col("user_id").col("hash"))
            .foreign_key(&mut cascade("recovery_code", "second_factor", "user_id"))
            .take();
        manager.create_table(code).await
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

fn cascade(from: &'static str, to: &'static str, column: &'static str) -> ForeignKeyCreateStatement {
    ForeignKey::create().from(from, "user_id").to(to, column).on_delete(ForeignKeyAction::Cascade).take()
}
