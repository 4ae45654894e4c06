//! Retention: what is left of purged grabs, and the indexes by which the purges find the oldest rows.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, small_integer};
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
        // Usage counts cover 30 days, also if grabs are purged earlier.
        let tally = Table::create()
            .table("grab_tally")
            .col(id(manager, "team_id"))
            .col(small_integer("env"))
            .col(small_integer("status"))
            .col(big_integer("day")) // of creation, since the epoch
            .col(big_integer("grabs").check(Expr::cust("grabs > 0")))
            .primary_key(Index::create().col("team_id").col("env").col("status").col("day"))
            .take();
        manager.create_table(tally).await?;
        manager.create_index(Index::create().name("grab_tally_age").table("grab_tally").col("day").take()).await?;

        // Tells a purged grab from a lost one: those that ended by this time may be missing.
        let mark = Table::create()
            .table("purge_mark")
            .col(small_integer("env").primary_key())
            .col(big_integer("finished_until"))
            .take();
        manager.create_table(mark).await?;

        let revoked = Index::create()
            .name("api_key_revoked")
            .table("api_key")
            .col("revoked_at")
            .and_where(Expr::cust("revoked_at IS NOT NULL"))
            .take();
        manager.create_index(revoked).await?;

        // Partial on constants, so that no other query prefers them to the index that was made for it.
        for (name, only) in [("grab_test_age", "env = 1"), ("grab_image_age", "env = 0 AND image_key IS NOT NULL")] {
            let oldest_first =
                Index::create().name(name).table("grab").col("finished_at").and_where(Expr::cust(only)).take();
            manager.create_index(oldest_first).await?;
        }
        team_storage(manager).await
    }
}

/// The size of each team's images. Triggers keep it, so that it is exact whatever version of the program writes.
async fn team_storage(manager: &SchemaManager<'_>) -> Result<(), DbErr> {
    let storage = Table::create()
        .table("team_storage")
        .col(id(manager, "team_id").primary_key())
        .col(big_integer("bytes")) // of live grabs' images
        .take();
    manager.create_table(storage).await?;
    let triggers: &[&str] = if is_sqlite(manager) { &SQLITE } else { &POSTGRES };
    let existing = "INSERT INTO team_storage (team_id, bytes) \
        SELECT team_id, CAST(SUM(COALESCE(bytes, 0)) AS bigint) FROM grab \
        WHERE env = 0 AND image_key IS NOT NULL GROUP BY team_id";
    for statement in triggers.iter().chain([&existing]) {
        manager.get_connection().execute_unprepared(statement).await?;
    }
    Ok(())
}

const SQLITE: [&str; 4] = [
    "CREATE TRIGGER team_storage_insert AFTER INSERT ON grab \
             WHEN NEW.env = 0 AND NEW.image_key IS NOT NULL \
             BEGIN INSERT INTO team_storage (team_id, bytes) VALUES (NEW.team_id, COALESCE(NEW.bytes, 0)) \
             ON CONFLICT (team_id) DO UPDATE SET bytes = bytes + excluded.bytes; END",
    "CREATE TRIGGER team_storage_add AFTER UPDATE OF image_key ON grab \
             WHEN NEW.env = 0 AND OLD.image_key IS NULL AND NEW.image_key IS NOT NULL \
             BEGIN INSERT INTO team_storage (team_id, bytes) VALUES (NEW.team_id, COALESCE(NEW.bytes, 0)) \
             ON CONFLICT (team_id) DO UPDATE SET bytes = bytes + excluded.bytes; END",
    "CREATE TRIGGER team_storage_remove AFTER UPDATE OF image_key ON grab \
             WHEN OLD.env = 0 AND OLD.image_key IS NOT NULL AND NEW.image_key IS NULL \
             BEGIN UPDATE team_storage SET bytes = bytes - COALESCE(OLD.bytes, 0) WHERE team_id = OLD.team_id; END",
    "CREATE TRIGGER team_storage_delete AFTER DELETE ON grab \
             WHEN OLD.env = 0 AND OLD.image_key IS NOT NULL \
             BEGIN UPDATE team_storage SET bytes = bytes - COALESCE(OLD.bytes, 0) WHERE team_id = OLD.team_id; END",
];

const POSTGRES: [&str; 6] = [
    "CREATE FUNCTION team_storage_add() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN INSERT INTO team_storage (team_id, bytes) VALUES (NEW.team_id, COALESCE(NEW.bytes, 0)) \
             ON CONFLICT (team_id) DO UPDATE SET bytes = team_storage.bytes + excluded.bytes; RETURN NULL; END $$",
    "CREATE FUNCTION team_storage_remove() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN UPDATE team_storage SET bytes = bytes - COALESCE(OLD.bytes, 0) WHERE team_id = OLD.team_id; \
             RETURN NULL; END $$",
    "CREATE TRIGGER team_storage_insert AFTER INSERT ON grab FOR EACH ROW \
             WHEN (NEW.env = 0 AND NEW.image_key IS NOT NULL) EXECUTE FUNCTION team_storage_add()",
    "CREATE TRIGGER team_storage_add AFTER UPDATE OF image_key ON grab FOR EACH ROW \
             WHEN (NEW.env = 0 AND OLD.image_key IS NULL AND NEW.image_key IS NOT NULL) \
             EXECUTE FUNCTION team_storage_add()",
    "CREATE TRIGGER team_storage_remove AFTER UPDATE OF image_key ON grab FOR EACH ROW \
             WHEN (OLD.env = 0 AND OLD.image_key IS NOT NULL AND NEW.image_key IS NULL) \
             EXECUTE FUNCTION team_storage_remove()",
    "CREATE TRIGGER team_storage_delete AFTER DELETE ON grab FOR EACH ROW \
             WHEN (OLD.env = 0 AND OLD.image_key IS NOT NULL) EXECUTE FUNCTION team_storage_remove()",
];

fn is_sqlite(manager: &SchemaManager<'_>) -> bool {
    manager.get_database_backend() == DbBackend::Sqlite
}

/// A UUID column: native on PostgreSQL, 16 bytes on SQLite.
fn id(manager: &SchemaManager<'_>, name: &'static str) -> ColumnDef {
    let mut column = ColumnDef::new(name);
    if is_sqlite(manager) {
        column.binary_len(16);
    } else {
        column.uuid();
    }
    column.not_null().take()
}
