//! Proxies of teams, through which pages are loaded.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, big_integer_null, small_integer, text, text_null};
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
        manager.create_table(proxies(manager)).await?;
        let of_team = Index::create().name("proxies_team").table("proxies").col("team_id").col("env").col("id").take();
        manager.create_index(of_team).await?;
        let of_grant = Index::create()
            .name("proxies_grant")
            .table("proxies")
            .col("grant_id")
            .and_where(Expr::cust("grant_id IS NOT NULL"))
            .take();
        manager.create_index(of_grant).await
    }
}

fn proxies(manager: &SchemaManager) -> TableCreateStatement {
    Table::create()
        .table("proxies")
        .col(id(manager, "id").not_null().primary_key())
        .col(id(manager, "team_id").not_null())
        .col(small_integer("env").check(Expr::cust("env IN (0, 1)"))) // 0 live, 1 test
        // The grant of the app that created the proxy, with which it is deleted. NULL: it was created by something else.
        .col(id(manager, "grant_id"))
        .col(text("name"))
        .col(text("url")) // without a login
        .col(ColumnDef::new("login").blob()) // user name and password, encrypted; NULL: there are none
        .col(big_integer("created_at"))
        .col(big_integer("updated_at"))
        .col(big_integer_null("last_used_at"))
        .col(text_null("last_error")) // a word; NULL: no capture has failed because of it
        .col(big_integer_null("last_error_at"))
        .check(Expr::cust("(last_error IS NULL) = (last_error_at IS NULL)"))
        .foreign_key(ForeignKey::create().from("proxies", "team_id").to("team", "id"))
        .foreign_key(
            ForeignKey::create()
                .from("proxies", "grant_id")
                .to("oauth_grant", "id")
                .on_delete(ForeignKeyAction::Cascade),
        )
        .take()
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
