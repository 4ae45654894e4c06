//! Who has seen the secrets of a team that are in use, so that they can be replaced when somebody leaves.
//!
//! Times are milliseconds since the epoch.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, big_integer_null};
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
        // The members to whom the link secret of a key was shown. Rows are deleted when it is replaced.
        let view = Table::create()
            .table("link_secret_view")
            .col(id(manager, "key_id").not_null().take())
            .col(id(manager, "user_id").not_null().take()) // no foreign key: a former member has seen it, too
            .col(big_integer("seen_at"))
            .primary_key(Index::create().col("key_id").col("user_id"))
            .foreign_key(
                ForeignKey::create()
                    .from("link_secret_view", "key_id")
                    .to("api_key", "id")
                    .on_delete(ForeignKeyAction::Cascade),
            )
            .take();
        manager.create_table(view).await?;
        // When the current link secret was made. NULL: by an earlier version, which did not record who saw it.
        let link_secret_at = big_integer_null("link_secret_at");
        // The same for the secret of a webhook, and the person to whom it was shown. NULL: an API key or an app.
        let (secret_at, secret_by) = (big_integer_null("secret_at"), id(manager, "secret_by"));
        // One by one, because SQLite adds one column at a time.
        for (table, column) in
            [("api_key", link_secret_at), ("webhook_endpoint", secret_at), ("webhook_endpoint", secret_by)]
        {
            manager.alter_table(Table::alter().table(table).add_column(column).take()).await?;
        }
        Ok(())
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
    column.take()
}
