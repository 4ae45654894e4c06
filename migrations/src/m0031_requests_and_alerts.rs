//! The API requests of a team that its members can look up: refused ones, and those that changed something. Alerts about the
//! percentage of credits that is left.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, integer, small_integer, text, text_null};
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
        // No foreign keys: a request is written a second after its response, when its team may be gone.
        let table = Table::create()
            .table("api_request")
            .col(id(manager, "id").not_null().primary_key()) // UUIDv7 of the time of the response
            .col(id(manager, "team_id").not_null())
            .col(big_integer("at")) // when the request arrived
            .col(small_integer("env").check(Expr::cust("env IN (0, 1)")))
            .col(id(manager, "key_id")) // NULL: an app
            .col(id(manager, "grant_id")) // NULL: a key
            .col(text_null("request_id"))
            .col(text("method"))
            .col(text("path"))
            .col(small_integer("status")) // of HTTP
            .col(text_null("code")) // NULL: accepted
            .col(text_null("message"))
            .col(text_null("host")) // of the page to capture
            .col(text_null("options")) // names, separated by spaces
            .col(id(manager, "grab_id"))
            .col(integer("latency_ms").check(Expr::cust("latency_ms >= 0")))
            // Requests of the team after this one that were not recorded.
            .col(integer("omitted").default(0).check(Expr::cust("omitted >= 0")))
            .take();
        manager.create_table(table).await?;
        let of_team = Index::create().name("api_request_team").table("api_request").col("team_id").col("id").take();
        manager.create_index(of_team).await?;

        // How many percentages the balance has fallen to. All at first, because the owners are told of falls only.
        let stage = small_integer("alert_stage").default(3).check(Expr::cust("alert_stage BETWEEN 0 AND 3")).take();
        manager.alter_table(Table::alter().table("team").add_column(stage).take()).await
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
