//! What an app may do, and what ends with it: the scopes of grants and tokens, and who created a webhook.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{small_integer, small_integer_null};
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
        // Bits: 1 grabs, 2 manage. Earlier grants have 1, because that is what people agreed to. A token has at most the
        // scopes of its grant; those of a refresh token have no effect.
        let scopes = small_integer("scopes").default(1).check(Expr::cust("scopes BETWEEN 1 AND 3")).take();
        for table in ["oauth_grant", "oauth_token"] {
            manager.alter_table(Table::alter().table(table).add_column(scopes.clone()).take()).await?;
        }

        // The grant of the app that created the webhook, with which it is deleted. NULL: it was created by something else.
        let grant = id(manager, "grant_id").extra("REFERENCES oauth_grant (id) ON DELETE CASCADE").take();
        // 0 an API key, 1 a person, 2 an app. NULL: created by an earlier version, which let apps do it and did not
        // record it.
        let creator = small_integer_null("creator")
            .check(Expr::cust("creator IN (0, 1, 2) AND (creator = 2) = (grant_id IS NOT NULL)"))
            .take();
        // SQLite adds one column at a time.
        for column in [grant, creator] {
            manager.alter_table(Table::alter().table("webhook_endpoint").add_column(column).take()).await?;
        }
        let of_grant = Index::create()
            .name("webhook_grant")
            .table("webhook_endpoint")
            .col("grant_id")
            .and_where(Expr::cust("grant_id IS NOT NULL"))
            .take();
        manager.create_index(of_grant).await
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
