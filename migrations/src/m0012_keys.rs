//! Restricted API keys: scopes, expiry, and who created them; and the key that created a grab, for the usage of keys.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, big_integer_null, small_integer};
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
        // Bits: 1 read, 2 create, 4 manage. Existing keys have all.
        let scopes = small_integer("scopes").default(7).check(Expr::cust("scopes BETWEEN 1 AND 7")).take();
        let expires_at = big_integer_null("expires_at");
        // The person who created it. NULL: an operator's command, an earlier version, or an account that was deleted.
        let created_by = id(manager, "created_by");
        // SQLite adds one column at a time.
        for column in [scopes, expires_at, created_by] {
            manager.alter_table(Table::alter().table("api_key").add_column(column).take()).await?;
        }
        let creator = Index::create()
            .name("api_key_creator")
            .table("api_key")
            .col("created_by")
            .and_where(Expr::cust("created_by IS NOT NULL"))
            .take();
        manager.create_index(creator).await?;

        let expiry = Index::create()
            .name("api_key_expiry")
            .table("api_key")
            .col("expires_at")
            .and_where(Expr::cust("expires_at IS NOT NULL"))
            .take();
        manager.create_index(expiry).await?;

        // NULL: an app, a person, or an earlier version. The key itself may have been deleted since.
        let key = Table::alter().table("grab").add_column(id(manager, "key_id")).take();
        manager.alter_table(key).await?;
        let usage = Index::create()
            .name("grab_key")
            .table("grab")
            .col("key_id")
            .col("created_at")
            .col("status")
            .and_where(Expr::cust("key_id IS NOT NULL"))
            .take();
        manager.create_index(usage).await?;

        // Numbers of purged grabs of a key, by the day of their creation.
        let tally = Table::create()
            .table("key_tally")
            .col(id(manager, "key_id").not_null())
            .col(big_integer("day")) // since the epoch
            .col(big_integer("grabs").check(Expr::cust("grabs > 0")))
            .col(big_integer("done").check(Expr::cust("done BETWEEN 0 AND grabs")))
            .primary_key(Index::create().col("key_id").col("day"))
            .take();
        manager.create_table(tally).await?;
        manager.create_index(Index::create().name("key_tally_age").table("key_tally").col("day").take()).await
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
    column
}
