//! Deletion of teams and accounts: what is still to be erased, suspended accounts, and an audit trail from which personal
//! data can be erased, and in which the last backup is found.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, big_integer_null, small_integer, text_null};
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
        let sqlite = manager.get_database_backend() == DbBackend::Sqlite;
        // The row of a deleted team stays, without its name, because the ledger refers to it. Its status is 1.
        let deleted = Table::alter().table("team").add_column(big_integer_null("deleted_at")).take();
        manager.alter_table(deleted).await?;
        // A suspended account cannot sign in. SQLite adds one column at a time.
        for column in [big_integer_null("suspended_at"), text_null("suspended_reason")] {
            manager.alter_table(Table::alter().table("user").add_column(column).take()).await?;
        }

        let id = match sqlite {
            true => ColumnDef::new("id").binary_len(16).not_null().primary_key().take(),
            false => ColumnDef::new("id").uuid().not_null().primary_key().take(),
        };
        let erasure = Table::create()
            .table("erasure")
            .col(id) // of the deleted team or person
            .col(small_integer("kind").check(Expr::cust("kind IN (0, 1)"))) // 0 team, 1 person
            .col(text_null("email")) // of the person, to find it in the audit trail
            .col(big_integer("audit_id")) // entries up to this one are done
            .col(big_integer("created_at"))
            .check(Expr::cust("(kind = 1) = (email IS NOT NULL)"))
            .take();
        manager.create_table(erasure).await?;

        // Finds the last backup.
        let backup = Index::create()
            .name("audit_backup")
            .table("audit")
            .col("at")
            .and_where(Expr::cust("action = 'backup.create'"))
            .take();
        manager.create_index(backup).await?;

        let statements: &[&str] = if sqlite { &SQLITE } else { &POSTGRES };
        for statement in statements {
            manager.get_connection().execute_unprepared(statement).await?;
        }
        Ok(())
    }
}

/// An entry may lose its personal data, and nothing else of it may change.
const SQLITE: [&str; 2] = [
    "DROP TRIGGER audit_no_update",
    "CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit WHEN NOT (\
         NEW.id = OLD.id AND NEW.at = OLD.at AND NEW.actor = OLD.actor AND NEW.action = OLD.action \
         AND NEW.team_id IS OLD.team_id AND (NEW.target = OLD.target OR NEW.target = '(erased)') \
         AND (NEW.address IS NULL OR NEW.address IS OLD.address) AND (NEW.detail IS NULL OR NEW.detail IS OLD.detail)) \
     BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END",
];

const POSTGRES: [&str; 3] = [
    "DROP TRIGGER audit_append_only ON audit",
    "CREATE TRIGGER audit_append_only BEFORE TRUNCATE ON audit FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse()",
    "CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit FOR EACH ROW WHEN (NOT (\
         NEW.id = OLD.id AND NEW.at = OLD.at AND NEW.actor = OLD.actor AND NEW.action = OLD.action \
         AND NEW.team_id IS NOT DISTINCT FROM OLD.team_id AND (NEW.target = OLD.target OR NEW.target = '(erased)') \
         AND (NEW.address IS NULL OR NEW.address IS NOT DISTINCT FROM OLD.address) \
         AND (NEW.detail IS NULL OR NEW.detail IS NOT DISTINCT FROM OLD.detail))) \
     EXECUTE FUNCTION audit_refuse()",
];
