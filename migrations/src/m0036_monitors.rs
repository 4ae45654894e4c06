//! Monitors: captures that are repeated by a schedule and compared with a baseline, and their runs.

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
        manager.create_table(monitors(manager)).await?;
        let of_team =
            Index::create().name("monitors_team").table("monitors").col("team_id").col("env").col("id").take();
        manager.create_index(of_team).await?;
        partial_index(manager, "monitors_due", "monitors", "next_run_at").await?;
        partial_index(manager, "monitors_grant", "monitors", "grant_id").await?;
        partial_index(manager, "monitors_held", "monitors", "held_until").await?;
        partial_index(manager, "monitors_feed", "monitors", "feed_hash").await?;

        manager.create_table(runs(manager)).await?;
        // A due time has one run, whatever happens to the processes that start it.
        let once = Index::create()
            .name("monitor_runs_once")
            .table("monitor_runs")
            .col("monitor_id")
            .col("due_at")
            .unique()
            .take();
        manager.create_index(once).await?;
        partial_index(manager, "monitor_runs_open", "monitor_runs", "check_at").await?;

        // 0 a change, 1 failures, 2 their end: the message is about a monitor. NULL: it is not. SQLite cannot extend the check
        // of `event`.
        let about = small_integer_null("monitor_event").check(Expr::cust("monitor_event IN (0, 1, 2)")).take();
        manager.alter_table(Table::alter().table("delivery").add_column(about).take()).await
    }
}

fn monitors(manager: &SchemaManager) -> TableCreateStatement {
    Table::create()
        .table("monitors")
        .col(id(manager, "id").not_null().primary_key())
        .col(id(manager, "team_id").not_null())
        .col(small_integer("env").check(Expr::cust("env IN (0, 1)"))) // 0 live, 1 test
        .col(small_integer("creator").check(Expr::cust("creator IN (0, 1, 2)"))) // an API key, a user, an app
        .col(id(manager, "creator_id").not_null())
        // The grant of the app that created the monitor, with which it is deleted. NULL: it was created by something else.
        .col(id(manager, "grant_id"))
        .col(text("name"))
        .col(text("capture")) // the capture spec as JSON, without secrets
        .col(ColumnDef::new("secrets").blob()) // encrypted; NULL: there are none
        .col(text_null("every")) // NULL: by a cron expression
        .col(text_null("cron"))
        .col(text_null("time_zone"))
        // In millionths of the image. NULL: images are not compared.
        .col(integer_null("threshold_ppm").check(Expr::cust("threshold_ppm BETWEEN 0 AND 1000000")))
        .col(text("ignored")) // CSS selectors as JSON
        .col(text_null("ignored_areas")) // rectangles as JSON; NULL: there are none
        .col(integer("min_region_px").check(Expr::cust("min_region_px BETWEEN 0 AND 1000000")))
        .col(small_integer("compares_status").check(Expr::cust("compares_status IN (0, 1)")))
        .col(text_null("text_patterns")) // regular expressions as JSON; NULL: texts are not compared
        .col(small_integer("compares_elements").check(Expr::cust("compares_elements IN (0, 1)")))
        .col(small_integer("baseline").check(Expr::cust("baseline IN (0, 1)"))) // latest, accepted
        .col(small_integer("alert_after").check(Expr::cust("alert_after BETWEEN 1 AND 10")))
        .col(small_integer("notify").check(Expr::cust("notify BETWEEN 0 AND 3"))) // bits: 1 webhooks, 2 mail
        // Minutes of the day. NULL: alerts are sent at any time.
        .col(small_integer_null("quiet_from").check(Expr::cust("quiet_from BETWEEN 0 AND 1439")))
        .col(small_integer_null("quiet_to").check(Expr::cust("quiet_to BETWEEN 0 AND 1439")))
        .col(text_null("quiet_zone"))
        .col(integer("keep").check(Expr::cust("keep BETWEEN 1 AND 1000")))
        .col(small_integer("state").check(Expr::cust("state IN (0, 1, 2)"))) // active, paused, out of credits
        .col(integer("differing")) // runs in a row that differ from the baseline
        .col(small_integer("change_reported").check(Expr::cust("change_reported IN (0, 1)")))
        .col(integer("failures")) // in a row
        .col(small_integer("failure_reported").check(Expr::cust("failure_reported IN (0, 1)")))
        // When the alerts of quiet hours are sent. NULL: there are none.
        .col(big_integer_null("held_until"))
        .col(id(manager, "held_change_id")) // the last run with a change that is to be reported
        .col(id(manager, "held_failure_id")) // the last run with a failure, or its end, that is to be reported
        // SHA-256 of the secret part of the address of the feed. NULL: there is no feed.
        .col(ColumnDef::new("feed_hash").var_binary(32))
        .col(small_integer("phase").check(Expr::cust("phase BETWEEN 0 AND 1000"))) // see `delay` of the schedule
        .col(big_integer("created_at"))
        .col(big_integer("updated_at"))
        .col(big_integer_null("next_run_at"))
        .col(id(manager, "baseline_grab_id")) // NULL: before the first run
        .col(id(manager, "last_run_id"))
        .check(Expr::cust("(creator = 2) = (grant_id IS NOT NULL)"))
        .check(Expr::cust("(every IS NULL) = (cron IS NOT NULL)"))
        .check(Expr::cust("(cron IS NULL) = (time_zone IS NULL)"))
        .check(Expr::cust("state <> 1 OR next_run_at IS NULL"))
        .check(Expr::cust("(quiet_from IS NULL) = (quiet_to IS NULL)"))
        .check(Expr::cust("(quiet_from IS NULL) = (quiet_zone IS NULL)"))
        .check(Expr::cust("(held_until IS NULL) = (held_change_id IS NULL AND held_failure_id IS NULL)"))
        .foreign_key(ForeignKey::create().from("monitors", "team_id").to("team", "id"))
        .foreign_key(
            ForeignKey::create()
                .from("monitors", "grant_id")
                .to("oauth_grant", "id")
                .on_delete(ForeignKeyAction::Cascade),
        )
        .take()
}

fn runs(manager: &SchemaManager) -> TableCreateStatement {
    Table::create()
        .table("monitor_runs")
        .col(id(manager, "id").not_null().primary_key())
        .col(id(manager, "monitor_id").not_null())
        .col(big_integer("due_at"))
        // running, first, same, changed, failed, missed
        .col(small_integer("outcome").check(Expr::cust("outcome BETWEEN 0 AND 5")))
        .col(id(manager, "grab_id")) // NULL: not created, or not yet
        .col(id(manager, "compared_to")) // the grab of the baseline; NULL: there is none
        .col(integer_null("difference_ppm"))
        // bits: 1 image, 2 status, 4 text, 8 elements
        .col(small_integer("changes").check(Expr::cust("changes BETWEEN 0 AND 15")))
        .col(text_null("text_changes")) // the lines that differ, as JSON; NULL: there are none
        .col(text_null("element_changes")) // the elements that differ, as JSON; NULL: there are none
        .col(small_integer("alerted").check(Expr::cust("alerted IN (0, 1)")))
        .col(big_integer_null("finished_at"))
        .col(text_null("error_code"))
        .col(text_null("error_message"))
        .col(big_integer("claimed_at")) // when its start began
        // Without a grab: when its creation is tried again. With one: when that was created. NULL: the run has ended.
        .col(big_integer_null("check_at"))
        .check(Expr::cust("(outcome = 0) = (check_at IS NOT NULL)"))
        .check(Expr::cust("(outcome = 0) = (finished_at IS NULL)"))
        .check(Expr::cust("(error_code IS NULL) = (error_message IS NULL)"))
        .foreign_key(
            ForeignKey::create()
                .from("monitor_runs", "monitor_id")
                .to("monitors", "id")
                .on_delete(ForeignKeyAction::Cascade),
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
