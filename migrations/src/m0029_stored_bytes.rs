//! The bytes that each team stores in rows, beside those of its images. Triggers keep them, so that they are exact whatever
//! version of the program writes.
//!
//! `grab.stored_bytes` is what a row counts. It is NULL in rows of earlier versions, which the service counts one after the
//! other: this step changes no row, so that it takes as long with millions of them.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, big_integer_null, text};
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
        let is_sqlite = manager.get_database_backend() == DbBackend::Sqlite;
        // Of rows of test keys; of live rows for which no credit was spent; and of those for which one was.
        for name in ["test_bytes", "uncharged_bytes", "charged_bytes"] {
            let column = big_integer(name).default(0).take();
            manager.alter_table(Table::alter().table("team_storage").add_column(column).take()).await?;
        }
        // NULL: not counted.
        let column = big_integer_null("stored_bytes").take();
        manager.alter_table(Table::alter().table("grab").add_column(column).take()).await?;

        // How far the service has come with work over all rows of a table.
        let mut position = ColumnDef::new("position"); // the id of the last row; NULL: at the start
        if is_sqlite {
            position.binary_len(16);
        } else {
            position.uuid();
        }
        let progress = Table::create()
            .table("row_progress")
            .col(text("name").primary_key())
            .col(position)
            .col(big_integer("began_at"))
            .take();
        manager.create_table(progress).await?;

        let statements = if is_sqlite { sqlite() } else { postgres() };
        for statement in statements {
            manager.get_connection().execute_unprepared(&statement).await?;
        }
        Ok(())
    }
}

/// What the cached answer of an idempotency key counts: its row and index entries.
const KEY_BYTES: &str = "600";

/// What a row of `grab` adds to each column of `team_storage`.
fn parts(row: &str) -> [String; 4] {
    let stored = format!("COALESCE({row}.stored_bytes, 0)");
    [
        format!("CASE WHEN {row}.env = 0 AND {row}.image_key IS NOT NULL THEN COALESCE({row}.bytes, 0) ELSE 0 END"),
        format!("CASE WHEN {row}.env = 1 THEN {stored} ELSE 0 END"),
        format!("CASE WHEN {row}.env = 0 AND {row}.status <> 2 THEN {stored} ELSE 0 END"),
        format!("CASE WHEN {row}.env = 0 AND {row}.status = 2 THEN {stored} ELSE 0 END"),
    ]
}

fn add(team: &str, parts: &[String; 4]) -> String {
    format!(
        "INSERT INTO team_storage (team_id, bytes, test_bytes, uncharged_bytes, charged_bytes) \
         VALUES ({team}, {}) ON CONFLICT (team_id) DO UPDATE SET bytes = team_storage.bytes + excluded.bytes, \
         test_bytes = team_storage.test_bytes + excluded.test_bytes, \
         uncharged_bytes = team_storage.uncharged_bytes + excluded.uncharged_bytes, \
         charged_bytes = team_storage.charged_bytes + excluded.charged_bytes;",
        parts.join(", ")
    )
}

fn added() -> String {
    add("NEW.team_id", &parts("NEW"))
}

fn changed() -> String {
    let (new, old) = (parts("NEW"), parts("OLD"));
    let difference = |at: usize| format!("{} - {}", new[at], old[at]);
    add("NEW.team_id", &[difference(0), difference(1), difference(2), difference(3)])
}

fn removed() -> String {
    let [bytes, test, uncharged, charged] = parts("OLD");
    format!(
        "UPDATE team_storage SET bytes = bytes - {bytes}, test_bytes = test_bytes - {test}, \
         uncharged_bytes = uncharged_bytes - {uncharged}, charged_bytes = charged_bytes - {charged} \
         WHERE team_id = OLD.team_id;"
    )
}

/// Whether a row of `grab` counts.
fn counts(row: &str) -> String {
    format!("({row}.stored_bytes IS NOT NULL OR {row}.env = 0 AND {row}.image_key IS NOT NULL)")
}

/// Whether a change of a row changes what it counts. A change of the status alone moves only what was counted.
const CHANGES: &str = "(COALESCE(OLD.stored_bytes, -1) <> COALESCE(NEW.stored_bytes, -1) \
    OR (OLD.image_key IS NULL) <> (NEW.image_key IS NULL) OR OLD.status <> NEW.status AND NEW.stored_bytes IS NOT NULL)";

fn key_parts(sign: &str, row: &str) -> [String; 4] {
    let of = |env: i16| format!("CASE WHEN {row}.env = {env} THEN {sign}{KEY_BYTES} ELSE 0 END");
    ["0".to_owned(), of(1), of(0), "0".to_owned()]
}

/// The former triggers count images only.
fn sqlite() -> Vec<String> {
    let mut statements: Vec<String> =
        ["insert", "add", "remove", "delete"].map(|name| format!("DROP TRIGGER team_storage_{name}")).into();
    let trigger = |name: &str, event: &str, when: &str, body: &str| {
        format!("CREATE TRIGGER {name} AFTER {event} WHEN {when} BEGIN {body} END")
    };
    statements.extend([
        trigger("team_storage_insert", "INSERT ON grab", &counts("NEW"), &added()),
        trigger("team_storage_change", "UPDATE OF image_key, stored_bytes, status ON grab", CHANGES, &changed()),
        trigger("team_storage_delete", "DELETE ON grab", &counts("OLD"), &removed()),
        trigger("idem_storage_insert", "INSERT ON idem", "NEW.cached", &add("NEW.team_id", &key_parts("", "NEW"))),
        trigger(
            "idem_storage_cached",
            "UPDATE OF cached ON idem",
            "NEW.cached AND NOT OLD.cached",
            &add("NEW.team_id", &key_parts("", "NEW")),
        ),
        trigger(
            "idem_storage_uncached",
            "UPDATE OF cached ON idem",
            "OLD.cached AND NOT NEW.cached",
            &add("NEW.team_id", &key_parts("-", "NEW")),
        ),
        trigger("idem_storage_delete", "DELETE ON idem", "OLD.cached", &key_removed()),
    ]);
    statements
}

fn key_removed() -> String {
    let [_, test, uncharged, _] = key_parts("", "OLD");
    format!(
        "UPDATE team_storage SET test_bytes = test_bytes - {test}, uncharged_bytes = uncharged_bytes - {uncharged} \
         WHERE team_id = OLD.team_id;"
    )
}

/// The former functions stay: files are counted with them.
fn postgres() -> Vec<String> {
    let mut statements: Vec<String> =
        ["insert", "add", "remove", "delete"].map(|name| format!("DROP TRIGGER team_storage_{name} ON grab")).into();
    let mut trigger = |name: &str, event: &str, when: &str, body: &str| {
        statements.push(format!(
            "CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} RETURN NULL; END $$"
        ));
        statements
            .push(format!("CREATE TRIGGER {name} AFTER {event} FOR EACH ROW WHEN ({when}) EXECUTE FUNCTION {name}()"));
    };
    trigger("team_storage_insert", "INSERT ON grab", &counts("NEW"), &added());
    trigger("team_storage_change", "UPDATE OF image_key, stored_bytes, status ON grab", CHANGES, &changed());
    trigger("team_storage_delete", "DELETE ON grab", &counts("OLD"), &removed());
    trigger("idem_storage_insert", "INSERT ON idem", "NEW.cached", &add("NEW.team_id", &key_parts("", "NEW")));
    trigger(
        "idem_storage_cached",
        "UPDATE OF cached ON idem",
        "NEW.cached AND NOT OLD.cached",
        &add("NEW.team_id", &key_parts("", "NEW")),
    );
    trigger(
        "idem_storage_uncached",
        "UPDATE OF cached ON idem",
        "OLD.cached AND NOT NEW.cached",
        &add("NEW.team_id", &key_parts("-", "NEW")),
    );
    trigger("idem_storage_delete", "DELETE ON idem", "OLD.cached", &key_removed());
    statements
}
