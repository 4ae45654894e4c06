//! PostgreSQL only: query plans, deadlocks, and concurrent migrations.

use std::time::Duration;

use futures::future::join_all;
use grabd_domain::Day;
use grabd_domain::credentials::Environment::Live;
use grabd_domain::credentials::Scopes;
use grabd_domain::grabs::{Class, Status};
use grabd_domain::ids::KeyId;
use grabd_store::Store;
use grabd_store::accounts::NewKey;
use grabd_store::grabs::{Created, LostLeases, PageRequest};
use sea_orm::{ConnectionTrait, Statement, TransactionTrait};
use tokio_util::task::TaskTracker;

use crate::harness::{NOW, TestDb, completion};

const CROWD: u32 = 50;
const OF_EACH: u32 = 100;

/// With thousands of queued jobs and statistics from before any lease, the generic plans of the hot statements still
/// use the intended indexes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hot_statements_use_their_indexes() {
    let db = TestDb::postgres().await;
    let team = db.team(10).await;
    let crowd = format!(
        "INSERT INTO team (id, name, status, created_at) \
         SELECT gen_random_uuid(), 'Another', 0, 0 FROM generate_series(1, 2000); \
         INSERT INTO api_key (id, team_id, env, name, hash, last4, created_at) \
         SELECT gen_random_uuid(), id, 0, 'A key', sha256(id::text::bytea), 'abcd', 0 FROM team; \
         INSERT INTO credit_lot (team_id, kind, granted, remaining, held, source_ref, cancelled, created_at) \
         SELECT id, 1, 100, 100, 0, 'order ' || id, false, 0 FROM team WHERE name = 'Another'; \
         INSERT INTO ledger (team_id, lot_id, kind, amount, at) \
         SELECT team_id, id, 1, 100, 0 FROM credit_lot WHERE granted = 100; \
         UPDATE credit_lot SET held = {OF_EACH} \
         WHERE id IN (SELECT id FROM credit_lot WHERE granted = 100 ORDER BY id LIMIT {CROWD}); \
         INSERT INTO grab (id, team_id, env, class, status, request, attempts, created_at) \
         SELECT gen_random_uuid(), team_id, 0, 0, 0, '{{}}', 0, {now} + n \
         FROM credit_lot, generate_series(1, {OF_EACH}) n WHERE held > 0; \
         INSERT INTO job (grab_id, team_id, class, vt, not_before, deadline_at, lot_id, attempt) \
         SELECT grab.id, team_id, 0, grab.created_at, {now}, {now} + 25000, credit_lot.id, 0 \
         FROM grab JOIN credit_lot USING (team_id); \
         INSERT INTO \"user\" (id, email, password_hash, created_at) VALUES (gen_random_uuid(), 'a@b', '', 0); \
         INSERT INTO member (team_id, user_id, role, created_at) \
         SELECT team.id, \"user\".id, 0, 0 FROM team, \"user\"; \
         INSERT INTO oauth_grant \
         (id, team_id, user_id, env, client_id, client_name, resources, created_at, expires_at) \
         SELECT gen_random_uuid(), team_id, user_id, 0, 'an app', 'An app', '', 0, 9000000000000 FROM member; \
         INSERT INTO oauth_token (hash, grant_id, kind, created_at, expires_at, siblings) \
         SELECT sha256(id::text::bytea), id, 0, 0, 9000000000000, 0 FROM oauth_grant; \
         VACUUM ANALYZE",
        now = NOW.as_ms(),
    );
    for statement in crowd.split("; ") {
        db.execute_raw(statement).await.unwrap();
    }
    let key = NewKey {
        id: KeyId(db.id()),
        team,
        environment: Live,
        name: "A key".into(),
        hash: [1; 32],
        last4: "abcd".into(),
        scopes: Scopes::ALL,
        expires_at: None,
        created_by: None,
        now: NOW,
    };
    db.store.accounts().create_key(key).await.unwrap();

    let explain = "DO $$ BEGIN \
        EXECUTE format('ALTER DATABASE %I SET session_preload_libraries = auto_explain', current_database()); \
        EXECUTE format('ALTER DATABASE %I SET auto_explain.log_min_duration = 0', current_database()); \
        EXECUTE format('ALTER DATABASE %I SET plan_cache_mode = force_generic_plan', current_database()); END $$";
    db.execute_raw(explain).await.unwrap();
    // The settings apply only to new connections.
    let store = Store::open(&db.url).await.unwrap();
    let leased = {
        let new = db.new_grab(team, Class::Sync);
        let id = new.id;
        assert_eq!(store.grabs().create(new).await.unwrap(), Created::Pending);
        db.execute_raw(&format!("UPDATE job SET vt = -1 WHERE grab_id = {}", db.literal(id.0))).await.unwrap();
        store.grabs().lease(db.lease_request(Class::Sync, 1, NOW)).await.unwrap().pop().unwrap()
    };
    store.grabs().complete(completion(&leased)).await.unwrap().unwrap();
    assert_eq!(store.grabs().create(db.new_grab(team, Class::Async)).await.unwrap(), Created::Pending);
    store.accounts().authenticate(&[1; 32]).await.unwrap().unwrap();
    assert_eq!(store.oauth().authenticate_token(&[1; 32], NOW).await.unwrap(), None);
    store.grabs().find_grabs(&[leased.grab]).await.unwrap();
    store
        .grabs()
        .list_grabs(
            team,
            Live,
            PageRequest { limit: 25, status: Some(Status::Done), cursor: None, ..PageRequest::default() },
        )
        .await
        .unwrap();
    store.grabs().has_waiting(Class::Sync).await.unwrap();
    store.grabs().reclaim_leases(LostLeases::Expired, NOW, 9).await.unwrap();
    store.grabs().expire_jobs(NOW, 9).await.unwrap();
    store.grabs().count_grabs(team, NOW).await.unwrap();
    store.grabs().count_ended_by_day(team, Day::of(NOW).before(29), Day::of(NOW)).await.unwrap();
    store.close().await;

    let log = db.server_log();
    let plans: Vec<&str> = log.split("plan:\n").skip(1).collect();
    let expected = [
        (r#"SELECT "job"."grab_id", "job"."team_id""#, "Index Scan using job_ready"),
        (r#"DELETE FROM "job""#, "Index Scan using job_pkey"),
        (r#"UPDATE "job" SET"#, "Index Scan using job_pkey"),
        (r#"UPDATE "grab" SET"#, "Index Scan using grab_pkey"),
        (r#"UPDATE "credit_lot" SET "held""#, "Index Scan using lot_order"),
        (r#"SELECT (SELECT "job"."vt""#, "using job_ready"),
        (r#"SELECT (SELECT "job"."vt""#, "using job_team"),
        (r#"SELECT "api_key""#, "Index Scan using api_key_hash_key"),
        (r#"SELECT "oauth_grant"."id""#, "Index Scan using oauth_token_pkey"),
        (r#"SELECT "grab"."id", "grab"."team_id""#, "Index Scan using grab_list"),
        (r#"SELECT "job"."grab_id", "job"."lease_token""#, "job_leased"),
        (r#"SELECT "job"."grab_id" FROM"#, "using job_ready"),
        (r#"SELECT "job"."grab_id", "job"."class""#, "Index Scan using job_deadline"),
        (r#"SELECT "grab"."env", COUNT"#, "grab_list"),
        (r#"SELECT "grab"."env", "grab"."status""#, "grab_list"),
    ];
    for (statement, index) in expected {
        let matching: Vec<_> = plans.iter().filter(|plan| plan.contains(statement)).collect();
        assert!(!matching.is_empty(), "{statement} was never run:\n{log}");
        assert!(matching.iter().any(|plan| plan.contains(index)), "{statement} without {index}:\n{}", matching[0]);
    }
    for plan in plans {
        let is_store_query = plan.lines().next().is_some_and(|query| query.contains('"'));
        assert!(!is_store_query || !plan.contains("Seq Scan on job"), "{plan}");
        assert!(!is_store_query || !plan.contains("Seq Scan on grab "), "{plan}");
    }
    db.finish().await;
}

/// Another transaction takes the locks in the opposite order. The server aborts the store's change, which is retried.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deadlocked_change_is_retried() {
    let db = TestDb::postgres().await;
    let team = db.team(1).await;
    let raw = db.raw_connection().await;
    let other = raw.begin().await.unwrap();
    other.execute_unprepared("SELECT 1 FROM credit_lot FOR UPDATE").await.unwrap();
    let create = TaskTracker::new().spawn({
        let store = db.store.clone();
        let new = db.new_grab(team, Class::Sync);
        async move { store.grabs().create(new).await }
    });
    // Wait until the create has locked the team and waits for the lot.
    let waiting = "SELECT count(*) AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock' \
                   AND datname = current_database()";
    tokio::time::timeout(Duration::from_secs(10), async {
        loop {
            let row = raw.query_one_raw(Statement::from_string(raw.get_database_backend(), waiting)).await.unwrap();
            if row.unwrap().try_get::<i64>("", "n").unwrap() > 0 {
                return;
            }
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    // A longer deadlock timeout here makes the server abort the store's transaction.
    other.execute_unprepared("SET LOCAL deadlock_timeout = '1min'").await.unwrap();
    other.execute_unprepared("SELECT 1 FROM team FOR UPDATE").await.unwrap();
    other.commit().await.unwrap();
    assert_eq!(create.await.unwrap().unwrap(), Created::Pending);
    let log = db.server_log();
    assert!(log.contains("deadlock detected"), "{log}");
    raw.close().await.unwrap();
    db.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_migrations_succeed() {
    let db = TestDb::empty_postgres().await;
    assert!(!db.store.schema_is_current().await.unwrap());
    for migrated in join_all((0..4).map(|_| db.store.migrate())).await {
        migrated.unwrap();
    }
    assert!(db.store.schema_is_current().await.unwrap());
    db.team(1).await;
    db.finish().await;
}
