//! Sites: jobs that capture many pages of one site, and their pages.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{
    big_integer, big_integer_null, integer, integer_null, small_integer, small_integer_null, text, text_null,
};
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
        manager.create_table(sites(manager)).await?;
        let of_team = Index::create().name("sites_team").table("sites").col("team_id").col("env").col("id").take();
        manager.create_index(of_team).await?;
        partial_index(manager, "sites_due", "sites", "next_at").await?;
        partial_index(manager, "sites_finished", "sites", "finished_at").await?;
        partial_index(manager, "sites_grant", "sites", "grant_id").await?;

        manager.create_table(pages(manager)).await?;
        let in_order =
            Index::create().name("site_pages_order").table("site_pages").col("site_id").col("number").unique().take();
        manager.create_index(in_order).await?;
        partial_index(manager, "site_pages_open", "site_pages", "started_at").await
    }
}

fn sites(manager: &SchemaManager) -> TableCreateStatement {
    Table::create()
        .table("sites")
        .col(id(manager, "id").not_null().primary_key())
        .col(id(manager, "team_id").not_null())
        .col(small_integer("env").check(Expr::cust("env IN (0, 1)"))) // 0 live, 1 test
        .col(small_integer("creator").check(Expr::cust("creator IN (0, 1, 2)"))) // an API key, a user, an app
        .col(id(manager, "creator_id").not_null())
        // The grant of the app that created the job, with which it is deleted. NULL: it was created by something else.
        .col(id(manager, "grant_id"))
        .col(text("name"))
        .col(text_null("url")) // the start page; NULL: the addresses are those of a sitemap
        .col(text_null("sitemap"))
        .col(small_integer_null("max_depth").check(Expr::cust("max_depth BETWEEN 0 AND 10")))
        .col(text("capture")) // the capture spec as JSON, without secrets
        .col(ColumnDef::new("secrets").blob()) // encrypted; NULL: there are none
        .col(integer("max_pages").check(Expr::cust("max_pages BETWEEN 1 AND 1000")))
        .col(text("include")) // patterns as JSON
        .col(text("exclude"))
        .col(small_integer("robots").check(Expr::cust("robots IN (0, 1)")))
        .col(small_integer("requests_per_minute").check(Expr::cust("requests_per_minute BETWEEN 1 AND 120")))
        // discovering, capturing, done, canceled, failed, out of credits
        .col(small_integer("state").check(Expr::cust("state BETWEEN 0 AND 5")))
        .col(text_null("error_code"))
        .col(text_null("error_message"))
        .col(text("documents")) // the addresses of sitemaps as JSON
        .col(integer("documents_read")) // how many of them were read
        .col(big_integer("created_at"))
        .col(big_integer("updated_at"))
        .col(big_integer_null("finished_at")) // NULL: something may still change
        .col(big_integer_null("next_at")) // when something is to be done; NULL: nothing more
        .col(big_integer("paced_until")) // until then, the site is asked for nothing
        .check(Expr::cust("(creator = 2) = (grant_id IS NOT NULL)"))
        .check(Expr::cust("(url IS NULL) = (sitemap IS NOT NULL)"))
        .check(Expr::cust("(url IS NULL) = (max_depth IS NULL)"))
        .check(Expr::cust("(error_code IS NULL) = (error_message IS NULL)"))
        .check(Expr::cust("finished_at IS NULL OR next_at IS NULL"))
        .foreign_key(ForeignKey::create().from("sites", "team_id").to("team", "id"))
        .foreign_key(
            ForeignKey::create().from("sites", "grant_id").to("oauth_grant", "id").on_delete(ForeignKeyAction::Cascade),
        )
        .take()
}

fn pages(manager: &SchemaManager) -> TableCreateStatement {
    Table::create()
        .table("site_pages")
        // It follows from the job and the address, so that no address has two rows.
        .col(id(manager, "id").not_null().primary_key())
        .col(id(manager, "site_id").not_null())
        .col(integer("number")) // from 1, in the order of discovery
        .col(text("url"))
        .col(small_integer("depth"))
        // The number of the page with the link, or the index of the sitemap. NULL: the start page.
        .col(integer_null("found_on"))
        // waiting, capturing, done, failed, skipped
        .col(small_integer("state").check(Expr::cust("state BETWEEN 0 AND 4")))
        // robots, other site, excluded, not HTML, max pages, private address, canceled, out of credits; NULL: it is not skipped
        .col(small_integer_null("skipped").check(Expr::cust("skipped BETWEEN 0 AND 7")))
        .col(id(manager, "grab_id")) // NULL: there is none, or it is not noted yet
        .col(big_integer_null("started_at")) // NULL: it is not being captured
        .col(text_null("error_code"))
        .col(text_null("error_message"))
        .check(Expr::cust("(state = 4) = (skipped IS NOT NULL)"))
        .check(Expr::cust("(state = 1) = (started_at IS NOT NULL)"))
        .check(Expr::cust("(error_code IS NULL) = (error_message IS NULL)"))
        .foreign_key(
            ForeignKey::create().from("site_pages", "site_id").to("sites", "id").on_delete(ForeignKeyAction::Cascade),
        )
        .take()
}

/// An index of the rows in which the column is set.
async fn partial_index(
    manager: &SchemaManager<'_>,
    name: &'static str,
    table: &'static str,
    column: &'static str,
) -> Result<(), DbErr> {
    let is_set = Expr::cust(format!("{column} IS NOT NULL"));
    let index = Index::create().name(name).table(table).col(column).and_where(is_set).take();
    manager.create_index(index).await
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
