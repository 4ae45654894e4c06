//! Teams, API keys, people, OAuth, credits, grabs, jobs, idempotency keys and webhooks.
//!
//! Times are milliseconds since the epoch, set by the program; the schema uses no clock. Enums are stored as small
//! integers, which are listed in the comment next to the column.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{
    big_integer, big_integer_null, boolean, integer, integer_null, pk_auto, small_integer, small_integer_null, text,
    text_null,
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
        let step = Step { manager, sqlite: manager.get_database_backend() == DbBackend::Sqlite };
        step.accounts().await?;
        step.people().await?;
        step.links().await?;
        step.apps().await?;
        step.permissions().await?;
        step.credits().await?;
        step.ledger().await?;
        step.grabs().await?;
        step.jobs().await?;
        step.idempotency().await?;
        step.webhooks().await?;
        step.images().await
    }
}

struct Step<'a> {
    manager: &'a SchemaManager<'a>,
    sqlite: bool,
}

impl Step<'_> {
    async fn accounts(&self) -> Result<(), DbErr> {
        let team = Table::create()
            .table("team")
            .col(self.id("id").primary_key())
            .col(text("name"))
            .col(small_integer("status").check(Expr::cust("status IN (0, 1)"))) // 0 active, 1 inactive
            .col(integer_null("async_queue_limit").check(Expr::cust("async_queue_limit >= 0"))) // NULL: the default
            .col(big_integer("created_at"))
            .take();
        self.manager.create_table(team).await?;
        self.index("team_list", "team", &["created_at", "id"], None).await?;

        let api_key = Table::create()
            .table("api_key")
            .col(self.id("id").primary_key())
            .col(self.id("team_id"))
            .col(small_integer("env").check(Expr::cust("env IN (0, 1)"))) // 0 live, 1 test
            .col(text("name"))
            .col(ColumnDef::new("hash").var_binary(32).not_null().unique_key()) // SHA-256 of the whole key
            .col(text("last4"))
            .col(big_integer("created_at"))
            .col(big_integer_null("revoked_at"))
            .col(big_integer_null("last_used_at"))
            .foreign_key(ForeignKey::create().from("api_key", "team_id").to("team", "id"))
            .take();
        self.manager.create_table(api_key).await?;
        self.index("api_key_team", "api_key", &["team_id", "created_at"], None).await
    }

    /// Users, memberships and sessions.
    async fn people(&self) -> Result<(), DbErr> {
        let user = Table::create()
            .table("user")
            .col(self.id("id").primary_key())
            .col(text("email").unique_key()) // in lower case
            .col(text("password_hash"))
            .col(big_integer("created_at"))
            .col(boolean("operator").default(false)) // is an operator of the service
            .take();
        self.manager.create_table(user).await?;

        let member = Table::create()
            .table("member")
            .col(self.id("team_id"))
            .col(self.id("user_id"))
            .col(small_integer("role").check(Expr::cust("role IN (0, 1)"))) // 0 owner, 1 member
            .col(big_integer("created_at"))
            .primary_key(Index::create().col("team_id").col("user_id"))
            .foreign_key(ForeignKey::create().from("member", "team_id").to("team", "id").on_delete(CASCADE))
            .foreign_key(ForeignKey::create().from("member", "user_id").to("user", "id").on_delete(CASCADE))
            .take();
        self.manager.create_table(member).await?;
        self.index("member_user", "member", &["user_id"], None).await?;

        let session = Table::create()
            .table("session")
            .col(hash("hash").primary_key())
            .col(self.id("user_id"))
            .col(big_integer("created_at"))
            .col(big_integer("seen_at"))
            .col(big_integer("expires_at"))
            .col(text_null("agent")) // the browser's User-Agent
            .foreign_key(ForeignKey::create().from("session", "user_id").to("user", "id").on_delete(CASCADE))
            .take();
        self.manager.create_table(session).await?;
        self.index("session_user", "session", &["user_id"], None).await?;
        self.index("session_expiry", "session", &["expires_at"], None).await
    }

    /// Links sent by mail: invitations and password resets. An invitation is deleted with the inviter's membership.
    async fn links(&self) -> Result<(), DbErr> {
        let by = ForeignKey::create()
            .from("invitation", ("team_id", "invited_by"))
            .to("member", ("team_id", "user_id"))
            .on_delete(CASCADE)
            .take();
        let invitation = Table::create()
            .table("invitation")
            .col(self.id("id").primary_key())
            .col(hash("hash").unique_key())
            .col(self.id("team_id"))
            .col(text("email")) // in lower case
            .col(small_integer("role").check(Expr::cust("role IN (0, 1)"))) // 0 owner, 1 member
            .col(self.id("invited_by"))
            .col(big_integer("created_at"))
            .col(big_integer("expires_at"))
            .foreign_key(&mut by.clone())
            .take();
        self.manager.create_table(invitation).await?;
        self.unique("invitation_one", "invitation", &["team_id", "email"], None).await?;
        self.index("invitation_by", "invitation", &["team_id", "invited_by"], None).await?;
        self.index("invitation_expiry", "invitation", &["expires_at"], None).await?;

        let reset = Table::create()
            .table("password_reset")
            .col(hash("hash").primary_key())
            .col(self.id("user_id"))
            .col(big_integer("expires_at"))
            .foreign_key(ForeignKey::create().from("password_reset", "user_id").to("user", "id").on_delete(CASCADE))
            .take();
        self.manager.create_table(reset).await?;
        self.index("password_reset_user", "password_reset", &["user_id"], None).await?;
        self.index("password_reset_expiry", "password_reset", &["expires_at"], None).await
    }

    /// OAuth clients and pending consent requests.
    async fn apps(&self) -> Result<(), DbErr> {
        let client = Table::create()
            .table("oauth_client")
            .col(text("id").primary_key())
            .col(ColumnDef::new("secret_hash").var_binary(32)) // NULL: public client
            .col(text("name"))
            .col(text("redirect_uris")) // separated by newlines
            .col(small_integer("auth_method").check(Expr::cust("auth_method IN (0, 1, 2)"))) // none, basic, post
            .col(big_integer("created_at"))
            .col(big_integer("seen_at"))
            .check(Expr::cust("(auth_method = 0) = (secret_hash IS NULL)"))
            .take();
        self.manager.create_table(client).await?;
        self.index("oauth_client_age", "oauth_client", &["seen_at"], None).await?;

        let ticket = Table::create()
            .table("oauth_ticket")
            .col(hash("hash").primary_key())
            .col(self.id("user_id"))
            .col(text("request"))
            .col(big_integer("expires_at"))
            .foreign_key(ForeignKey::create().from("oauth_ticket", "user_id").to("user", "id").on_delete(CASCADE))
            .take();
        self.manager.create_table(ticket).await?;
        self.index("oauth_ticket_user", "oauth_ticket", &["user_id"], None).await?;
        self.index("oauth_ticket_expiry", "oauth_ticket", &["expires_at"], None).await
    }

    /// OAuth grants, codes and tokens. Revoking a grant deletes it with its codes and tokens. Deleting the membership
    /// deletes the grant.
    async fn permissions(&self) -> Result<(), DbErr> {
        let member = ForeignKey::create()
            .from("oauth_grant", ("team_id", "user_id"))
            .to("member", ("team_id", "user_id"))
            .on_delete(CASCADE)
            .take();
        let grant = Table::create()
            .table("oauth_grant")
            .col(self.id("id").primary_key())
            .col(self.id("team_id"))
            .col(self.id("user_id"))
            .col(small_integer("env").check(Expr::cust("env IN (0, 1)"))) // 0 live, 1 test
            .col(text("client_id")) // of a registered client, or a client metadata URL
            .col(text("client_name"))
            .col(text_null("client_host"))
            .col(text("resources"))
            .col(big_integer("created_at"))
            .col(big_integer("expires_at"))
            .col(big_integer_null("connected_at")) // when its code was exchanged
            .col(big_integer_null("last_used_at"))
            .foreign_key(&mut member.clone())
            .take();
        self.manager.create_table(grant).await?;
        self.index("oauth_grant_member", "oauth_grant", &["team_id", "user_id"], None).await?;
        self.index("oauth_grant_user", "oauth_grant", &["user_id", "created_at"], None).await?;
        self.index("oauth_grant_client", "oauth_grant", &["client_id"], None).await?;
        self.index("oauth_grant_expiry", "oauth_grant", &["expires_at"], None).await?;
        self.index("oauth_grant_waiting", "oauth_grant", &["created_at"], Some("connected_at IS NULL")).await?;

        let code = Table::create()
            .table("oauth_code")
            .col(hash("hash").primary_key())
            .col(self.id("grant_id"))
            .col(text("redirect_uri"))
            .col(text("challenge"))
            .col(big_integer("expires_at"))
            .col(big_integer_null("used_at"))
            .foreign_key(ForeignKey::create().from("oauth_code", "grant_id").to("oauth_grant", "id").on_delete(CASCADE))
            .take();
        self.manager.create_table(code).await?;
        self.index("oauth_code_grant", "oauth_code", &["grant_id"], None).await?;
        self.index("oauth_code_expiry", "oauth_code", &["expires_at"], None).await?;

        let token = Table::create()
            .table("oauth_token")
            .col(hash("hash").primary_key())
            .col(self.id("grant_id"))
            .col(small_integer("kind").check(Expr::cust("kind IN (0, 1)"))) // 0 access, 1 refresh
            .col(big_integer("created_at"))
            .col(big_integer("expires_at"))
            .col(big_integer_null("rotated_at")) // when it was exchanged
            .col(ColumnDef::new("parent").var_binary(32)) // the refresh token it was exchanged for; NULL: the code
            .col(integer("siblings").check(Expr::cust("siblings >= 0"))) // number of repeated exchanges
            .check(Expr::cust("kind = 1 OR rotated_at IS NULL"))
            .foreign_key(
                ForeignKey::create().from("oauth_token", "grant_id").to("oauth_grant", "id").on_delete(CASCADE),
            )
            .take();
        self.manager.create_table(token).await?;
        self.index("oauth_token_grant", "oauth_token", &["grant_id"], None).await?;
        self.index("oauth_token_parent", "oauth_token", &["parent"], Some("parent IS NOT NULL")).await?;
        self.index("oauth_token_expiry", "oauth_token", &["expires_at"], None).await
    }

    async fn credits(&self) -> Result<(), DbErr> {
        let mut credit_lot = Table::create()
            .table("credit_lot")
            .col(self.serial("id"))
            .col(self.id("team_id"))
            .col(small_integer("kind").check(Expr::cust("kind IN (0, 1)"))) // 0 subscription, 1 prepaid
            .col(integer("granted").check(Expr::cust("granted > 0")))
            .col(integer("remaining").check(Expr::cust("remaining >= 0")))
            .col(integer("held"))
            .col(big_integer_null("expires_at"))
            .col(text("source_ref").unique_key()) // one grant per payment
            .col(boolean("cancelled"))
            .col(big_integer("created_at"))
            .check(Expr::cust("held >= 0 AND held <= remaining"))
            .check(Expr::cust("(kind = 0) = (expires_at IS NOT NULL)"))
            .foreign_key(ForeignKey::create().from("credit_lot", "team_id").to("team", "id"))
            .take();
        // Every hold and every spend updates the row. Free space on the page allows HOT updates, which skip the
        // indexes.
        self.stored(&mut credit_lot, "WITH (fillfactor = 50)", None);
        self.manager.create_table(credit_lot).await?;
        self.index("lot_order", "credit_lot", &["team_id", "kind", "expires_at", "id"], None).await?;
        self.index("lot_expiry", "credit_lot", &["expires_at"], Some("expires_at IS NOT NULL")).await
    }

    async fn ledger(&self) -> Result<(), DbErr> {
        let ledger = Table::create()
            .table("ledger")
            .col(self.serial("id"))
            .col(self.id("team_id"))
            .col(big_integer("lot_id"))
            .col(small_integer("kind")) // 1 grant, 2 spend, 3 expire, 4 adjust
            .col(integer("amount"))
            .col(self.id_null("grab_id"))
            .col(text_null("ref"))
            .col(big_integer("at"))
            .check(Expr::cust("(kind = 2) = (grab_id IS NOT NULL)"))
            .check(Expr::cust(
                "CASE kind WHEN 1 THEN amount > 0 WHEN 2 THEN amount = -1 WHEN 3 THEN amount < 0 \
                 WHEN 4 THEN amount <> 0 ELSE false END",
            ))
            .foreign_key(ForeignKey::create().from("ledger", "lot_id").to("credit_lot", "id"))
            .take();
        self.manager.create_table(ledger).await?;
        self.unique("ledger_one_spend", "ledger", &["grab_id"], Some("kind = 2")).await?;
        self.unique("ledger_one_grant", "ledger", &["lot_id"], Some("kind = 1")).await?;
        self.index("ledger_lot", "ledger", &["lot_id"], None).await?;
        self.index("ledger_team", "ledger", &["team_id", "id"], None).await?;

        let refuse: &[&str] = if self.sqlite {
            &[
                "CREATE TRIGGER ledger_no_update BEFORE UPDATE ON ledger \
                 BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
                "CREATE TRIGGER ledger_no_delete BEFORE DELETE ON ledger \
                 BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
            ]
        } else {
            &[
                "CREATE FUNCTION ledger_refuse() RETURNS trigger LANGUAGE plpgsql AS \
                 $$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$",
                "CREATE TRIGGER ledger_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger \
                 FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse()",
            ]
        };
        for trigger in refuse {
            self.manager.get_connection().execute_unprepared(trigger).await?;
        }
        Ok(())
    }

    async fn grabs(&self) -> Result<(), DbErr> {
        let mut grab = Table::create()
            .table("grab")
            .col(self.id("id").primary_key())
            .col(self.id("team_id"))
            .col(small_integer("env").check(Expr::cust("env IN (0, 1)"))) // 0 live, 1 test
            .col(small_integer("class").check(Expr::cust("class IN (0, 1)"))) // 0 sync, 1 async
            .col(small_integer("status").check(Expr::cust("status IN (0, 2, 3)"))) // 0 open, 2 done, 3 failed
            .col(text("request"))
            .col(text_null("facts"))
            .col(text_null("image_key").unique_key())
            .col(big_integer_null("bytes"))
            .col(integer_null("execution_ms"))
            .col(text_null("error_code"))
            .col(text_null("error_message"))
            .col(small_integer("attempts"))
            .col(self.id_null("session_id")) // of the last renderer, if the grab failed
            .col(big_integer("created_at"))
            .col(big_integer_null("finished_at"))
            .col(big_integer_null("deleted_at"))
            .check(Expr::cust("(status = 2) = (image_key IS NOT NULL) OR deleted_at IS NOT NULL"))
            .check(Expr::cust("deleted_at IS NULL OR image_key IS NULL"))
            .check(Expr::cust("(status = 3) = (error_code IS NOT NULL)"))
            .check(Expr::cust("(status = 0) = (finished_at IS NULL)"))
            .take();
        self.stored(&mut grab, "WITH (fillfactor = 90)", None);
        self.manager.create_table(grab).await?;
        let newest_first = Index::create()
            .name("grab_list")
            .table("grab")
            .col("team_id")
            .col("env")
            .col(("created_at", IndexOrder::Desc))
            .col(("id", IndexOrder::Desc))
            .take();
        self.manager.create_index(newest_first).await?;
        // Lets a team with a million images and three failures list its failures without scanning the images.
        let newest_first_of_status = Index::create()
            .name("grab_list_status")
            .table("grab")
            .col("team_id")
            .col("env")
            .col("status")
            .col(("created_at", IndexOrder::Desc))
            .col(("id", IndexOrder::Desc))
            .take();
        self.manager.create_index(newest_first_of_status).await?;
        // Counts the results of the last day, over all teams, without scanning older grabs.
        let ended = Some("finished_at IS NOT NULL");
        self.index("grab_ended", "grab", &["finished_at", "status", "env", "error_code"], ended).await?;
        self.index("grab_failed", "grab", &["finished_at", "id"], Some("status = 3 AND env = 0")).await
    }

    /// One row per open live grab. Small and hot; rows are deleted when the grab ends.
    async fn jobs(&self) -> Result<(), DbErr> {
        let mut job = Table::create()
            .table("job")
            .col(self.id("grab_id").primary_key())
            .col(self.id("team_id"))
            .col(small_integer("class").check(Expr::cust("class IN (0, 1)")))
            .col(big_integer("vt")) // fair queue rank
            .col(big_integer("not_before"))
            .col(big_integer("deadline_at"))
            .col(big_integer("lot_id")) // lot of the held credit
            .col(small_integer("attempt"))
            .col(self.id_null("lease_token"))
            .col(big_integer_null("lease_until"))
            .col(self.id_null("session_id"))
            .col(text_null("upload_key"))
            .check(Expr::cust("(lease_token IS NULL) = (lease_until IS NULL)"))
            .check(Expr::cust("(lease_token IS NULL) = (upload_key IS NULL)"))
            .take();
        self.stored(
            &mut job,
            "WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 500, \
             autovacuum_vacuum_cost_delay = 0)",
            Some("WITHOUT ROWID"),
        );
        self.manager.create_table(job).await?;
        self.index("job_ready", "job", &["class", "vt", "grab_id"], Some("lease_until IS NULL")).await?;
        // Not partial: the queue limit counts leased jobs too.
        self.index("job_team", "job", &["team_id", "class", "vt"], None).await?;
        // Partial on lease_until, not on lease_token: a condition on the token, as in the fence, would imply a
        // predicate on the token, and with outdated statistics the planner would use this index instead of the primary
        // key.
        self.index("job_leased", "job", &["lease_until"], Some("lease_until IS NOT NULL")).await?;
        self.index("job_deadline", "job", &["deadline_at"], None).await
    }

    async fn idempotency(&self) -> Result<(), DbErr> {
        let mut idem = Table::create()
            .table("idem")
            .col(self.id("team_id"))
            .col(small_integer("env"))
            .col(text("key").check(Expr::cust("length(key) BETWEEN 1 AND 255")))
            .col(ColumnDef::new("fp").var_binary(32).not_null()) // SHA-256 of the effective request
            .col(self.id("grab_id"))
            .col(big_integer("created_at"))
            .primary_key(Index::create().col("team_id").col("env").col("key"))
            .take();
        self.stored(&mut idem, "", Some("WITHOUT ROWID"));
        self.manager.create_table(idem).await?;
        self.index("idem_age", "idem", &["created_at"], None).await?;
        self.unique("idem_grab", "idem", &["grab_id"], None).await
    }

    /// Webhook endpoints and deliveries. A pending delivery has a time for its next attempt.
    async fn webhooks(&self) -> Result<(), DbErr> {
        let endpoint = Table::create()
            .table("webhook_endpoint")
            .col(self.id("id").primary_key())
            .col(self.id("team_id"))
            .col(small_integer("env").check(Expr::cust("env IN (0, 1)"))) // 0 live, 1 test
            .col(text("url"))
            .col(text("events")) // event names separated by commas, or *
            .col(text("description"))
            .col(small_integer_null("disabled").check(Expr::cust("disabled IN (0, 1, 2)"))) // requested, gone, failing
            .col(big_integer_null("failing_since"))
            .col(ColumnDef::new("secret").var_binary(128).not_null()) // encrypted, like previous_secret
            .col(ColumnDef::new("previous_secret").var_binary(128))
            .col(big_integer_null("previous_until"))
            .col(big_integer("created_at"))
            .check(Expr::cust("(previous_secret IS NULL) = (previous_until IS NULL)"))
            .foreign_key(ForeignKey::create().from("webhook_endpoint", "team_id").to("team", "id"))
            .take();
        self.manager.create_table(endpoint).await?;
        self.index("webhook_team", "webhook_endpoint", &["team_id", "env", "created_at"], None).await?;

        let delivery = Table::create()
            .table("delivery")
            .col(self.id("id").primary_key())
            .col(self.id("endpoint_id"))
            .col(self.id_null("grab_id")) // NULL: a test message
            .col(small_integer("event").check(Expr::cust("event IN (0, 1, 2)"))) // done, failed, test
            .col(text_null("body")) // set by the first attempt
            .col(small_integer("state").check(Expr::cust("state IN (0, 1, 2, 3)"))) // pending, delivered, failed, exhausted
            .col(small_integer("attempt"))
            .col(big_integer_null("next_at"))
            .col(small_integer_null("last_code"))
            // refused, unresolved, unreachable, tls, http, timed out; NULL: there was a response
            .col(small_integer_null("no_answer").check(Expr::cust("no_answer IN (0, 1, 2, 3, 4, 5)")))
            .col(integer_null("took_ms"))
            .col(big_integer_null("attempted_at"))
            .col(big_integer("created_at"))
            .check(Expr::cust("(next_at IS NOT NULL) = (state IN (0, 2))"))
            .check(Expr::cust("(grab_id IS NULL) = (event = 2)"))
            .take();
        self.manager.create_table(delivery).await?;
        self.unique("delivery_once", "delivery", &["grab_id", "endpoint_id", "event"], None).await?;
        self.index("delivery_due", "delivery", &["next_at"], Some("next_at IS NOT NULL")).await?;
        self.index("delivery_owed", "delivery", &["endpoint_id"], Some("next_at IS NOT NULL")).await?;
        self.index("delivery_list", "delivery", &["endpoint_id", "created_at", "id"], None).await?;
        self.index("delivery_age", "delivery", &["created_at"], None).await
    }

    /// Keys of images scheduled for deletion. The file may never have been written.
    async fn images(&self) -> Result<(), DbErr> {
        let mut image_gc =
            Table::create().table("image_gc").col(text("key").primary_key()).col(big_integer("not_before")).take();
        self.stored(&mut image_gc, "", Some("WITHOUT ROWID"));
        self.manager.create_table(image_gc).await?;
        self.index("image_gc_due", "image_gc", &["not_before"], None).await
    }

    /// A UUID column: native on PostgreSQL, 16 bytes on SQLite.
    fn id_null(&self, name: &'static str) -> ColumnDef {
        let mut column = ColumnDef::new(name);
        if self.sqlite {
            column.binary_len(16)
        } else {
            column.uuid()
        };
        column
    }

    fn id(&self, name: &'static str) -> ColumnDef {
        self.id_null(name).not_null().take()
    }

    /// An auto-increment column, 64 bits on both databases.
    fn serial(&self, name: &'static str) -> ColumnDef {
        if self.sqlite { pk_auto(name) } else { big_integer(name).auto_increment().primary_key().take() }
    }

    fn stored(&self, table: &mut TableCreateStatement, postgres: &'static str, sqlite: Option<&'static str>) {
        match (self.sqlite, sqlite) {
            (true, Some(how)) => table.extra(how),
            (false, _) if !postgres.is_empty() => table.extra(postgres),
            (true, None) | (false, _) => table,
        };
    }

    async fn index(
        &self,
        name: &'static str,
        table: &'static str,
        columns: &[&'static str],
        only: Option<&'static str>,
    ) -> Result<(), DbErr> {
        self.manager.create_index(index(name, table, columns, only)).await
    }

    async fn unique(
        &self,
        name: &'static str,
        table: &'static str,
        columns: &[&'static str],
        only: Option<&'static str>,
    ) -> Result<(), DbErr> {
        self.manager.create_index(index(name, table, columns, only).unique().take()).await
    }
}

const CASCADE: ForeignKeyAction = ForeignKeyAction::Cascade;

/// The SHA-256 of a secret. The secret itself is not stored.
fn hash(name: &'static str) -> ColumnDef {
    ColumnDef::new(name).var_binary(32).not_null().take()
}

fn index(
    name: &'static str,
    table: &'static str,
    columns: &[&'static str],
    only: Option<&'static str>,
) -> IndexCreateStatement {
    let mut index = Index::create().name(name).table(table).take();
    for column in columns {
        index.col(*column);
    }
    if let Some(only) = only {
        index.and_where(Expr::cust(only));
    }
    index
}
