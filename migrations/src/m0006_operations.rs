//! What an operator needs: reversed payments, suspension of teams, rules for target domains, the audit trail, and the
//! checksums of applied steps.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, big_integer_null, pk_auto, small_integer, text, text_null};
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
        steps(manager).await?;
        reversals(manager).await?;
        suspension(manager).await?;
        domains(manager).await?;
        audit(manager, sqlite).await
    }
}

/// The checksum of the source of each applied step, and the version of the program that recorded it.
async fn steps(manager: &SchemaManager<'_>) -> Result<(), DbErr> {
    let step = Table::create()
        .table("schema_step")
        .col(text("name").primary_key())
        .col(text("checksum")) // SHA-256, hexadecimal
        .col(text("version"))
        .take();
    manager.create_table(step).await
}

/// Refunds and disputes of payments. They may be reported before the payment itself, so there need not be a lot.
async fn reversals(manager: &SchemaManager<'_>) -> Result<(), DbErr> {
    let reversal = Table::create()
        .table("payment_reversal")
        .col(text("source_ref")) // of the lot
        .col(text("reference")) // of the ledger entries
        .col(small_integer("kind").check(Expr::cust("kind IN (0, 1)"))) // 0 refund, 1 dispute
        .col(big_integer("parts").check(Expr::cust("parts >= 0"))) // refunded so far; 0 for a dispute
        .col(big_integer("whole").check(Expr::cust("whole >= 0"))) // the whole payment; 0 for a dispute
        .col(small_integer("state").check(Expr::cust("state IN (0, 1, 2)"))) // 0 open, 1 won, 2 lost; 0 for a refund
        .col(big_integer("created_at"))
        .primary_key(Index::create().col("source_ref").col("reference"))
        .take();
    manager.create_table(reversal).await?;
    manager.create_index(index("payment_reversal_age", "payment_reversal", &["created_at"])).await
}

/// A suspended team has status 1.
async fn suspension(manager: &SchemaManager<'_>) -> Result<(), DbErr> {
    // SQLite adds one column at a time.
    for column in [big_integer_null("suspended_at"), text_null("suspended_reason")] {
        manager.alter_table(Table::alter().table("team").add_column(column).take()).await?;
    }
    Ok(())
}

async fn domains(manager: &SchemaManager<'_>) -> Result<(), DbErr> {
    let rule = Table::create()
        .table("domain_rule")
        .col(text("domain").primary_key()) // in lower case, ASCII
        .col(small_integer("kind").check(Expr::cust("kind IN (0, 1)"))) // 0 deny, 1 allow
        .col(big_integer("created_at"))
        .take();
    manager.create_table(rule).await
}

/// Entries are never edited. Only entries more than 30 days older than the newest one can be deleted, by the retention.
async fn audit(manager: &SchemaManager<'_>, sqlite: bool) -> Result<(), DbErr> {
    let team = match sqlite {
        true => ColumnDef::new("team_id").binary_len(16).take(),
        false => ColumnDef::new("team_id").uuid().take(),
    };
    let id = match sqlite {
        true => pk_auto("id"),
        false => big_integer("id").auto_increment().primary_key().take(),
    };
    let audit = Table::create()
        .table("audit")
        .col(id)
        .col(big_integer("at"))
        .col(text("actor"))
        .col(text("action"))
        .col(text("target"))
        .col(team)
        .col(text_null("address"))
        .col(text_null("detail"))
        .take();
    manager.create_table(audit).await?;
    manager.create_index(index("audit_age", "audit", &["at"])).await?;
    let refuse: &[&str] = match sqlite {
        true => &[
            "CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit \
             BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END",
            "CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit \
             WHEN OLD.at > (SELECT MAX(at) FROM audit) - 2592000000 \
             BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END",
        ],
        false => &[
            "CREATE FUNCTION audit_refuse() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN RAISE EXCEPTION 'the audit trail is append-only'; END $$",
            "CREATE FUNCTION audit_refuse_recent() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN IF OLD.at > (SELECT MAX(at) FROM audit) - 2592000000 THEN \
             RAISE EXCEPTION 'the audit trail is append-only'; END IF; RETURN OLD; END $$",
            "CREATE TRIGGER audit_append_only BEFORE UPDATE OR TRUNCATE ON audit \
             FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse()",
            "CREATE TRIGGER audit_keep_recent BEFORE DELETE ON audit \
             FOR EACH ROW EXECUTE FUNCTION audit_refuse_recent()",
        ],
    };
    for trigger in refuse {
        manager.get_connection().execute_unprepared(trigger).await?;
    }
    Ok(())
}

fn index(name: &'static str, table: &'static str, columns: &[&'static str]) -> IndexCreateStatement {
    let mut index = Index::create().name(name).table(table).take();
    for column in columns {
        index.col(*column);
    }
    index
}
