//! Files beside the images of grabs, by the keys of their URLs. On disk they are beside their image, whose key is in the
//! database before, and are deleted with it.
//!
//! Triggers remove the rows of a deleted image and count the files of live grabs in `team_storage`, so that both are
//! exact whatever version of the program deletes.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, small_integer, text};
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
        let grab = ForeignKey::create()
            .from("grab_file", "grab_id")
            .to("grab", "id")
            .on_delete(ForeignKeyAction::Cascade)
            .take();
        let file = Table::create()
            .table("grab_file")
            .col(text("key").primary_key())
            .col(id(manager, "grab_id"))
            .col(id(manager, "team_id"))
            .col(small_integer("env")) // 0 live, 1 test
            .col(small_integer("kind")) // 0 html, 1 text, 2 markdown, 3 links, 4 pdf, 5 report
            .col(big_integer("bytes"))
            .foreign_key(&mut grab.clone())
            .take();
        manager.create_table(file).await?;
        let of_grab =
            Index::create().name("grab_file_grab").table("grab_file").col("grab_id").col("kind").unique().take();
        manager.create_index(of_grab).await?;
        let of_team = Index::create().name("grab_file_team").table("grab_file").col("team_id").take();
        manager.create_index(of_team).await?;
        let triggers: &[&str] = if is_sqlite(manager) { &SQLITE } else { &POSTGRES };
        for statement in triggers {
            manager.get_connection().execute_unprepared(statement).await?;
        }
        Ok(())
    }
}

const SQLITE: [&str; 3] = [
    "CREATE TRIGGER grab_file_image AFTER UPDATE OF image_key ON grab \
             WHEN OLD.image_key IS NOT NULL AND NEW.image_key IS NULL \
             BEGIN DELETE FROM grab_file WHERE grab_id = OLD.id; END",
    "CREATE TRIGGER grab_file_add AFTER INSERT ON grab_file WHEN NEW.env = 0 \
             BEGIN INSERT INTO team_storage (team_id, bytes) VALUES (NEW.team_id, NEW.bytes) \
             ON CONFLICT (team_id) DO UPDATE SET bytes = bytes + excluded.bytes; END",
    "CREATE TRIGGER grab_file_remove AFTER DELETE ON grab_file WHEN OLD.env = 0 \
             BEGIN UPDATE team_storage SET bytes = bytes - OLD.bytes WHERE team_id = OLD.team_id; END",
];

/// The functions that count images count files too: both tables have the columns `team_id` and `bytes`.
const POSTGRES: [&str; 4] = [
    "CREATE FUNCTION grab_file_image() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN DELETE FROM grab_file WHERE grab_id = OLD.id; RETURN NULL; END $$",
    "CREATE TRIGGER grab_file_image AFTER UPDATE OF image_key ON grab FOR EACH ROW \
             WHEN (OLD.image_key IS NOT NULL AND NEW.image_key IS NULL) EXECUTE FUNCTION grab_file_image()",
    "CREATE TRIGGER grab_file_add AFTER INSERT ON grab_file FOR EACH ROW \
             WHEN (NEW.env = 0) EXECUTE FUNCTION team_storage_add()",
    "CREATE TRIGGER grab_file_remove AFTER DELETE ON grab_file FOR EACH ROW \
             WHEN (OLD.env = 0) EXECUTE FUNCTION team_storage_remove()",
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
