//! Checks that the operator queries use indexes on PostgreSQL. The SQLite test is next to the queries.

use std::time::Duration;

use grabd_domain::ids::GrabId;
use grabd_store::Store;
use grabd_store::operator::{FailureCursor, FailureFilter, TeamCursor, TeamFilter};

use crate::harness::{NOW, TestDb};

/// No query scans the whole history.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operator_queries_use_indexes() {
    let db = TestDb::postgres().await;
    let (team, other) = (db.team(0).await, db.team(0).await);
    let history = format!(
        "INSERT INTO grab (id, team_id, env, class, status, request, attempts, created_at, finished_at, image_key, \
         bytes, execution_ms, error_code) \
         SELECT ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, \
         CASE WHEN n % 5 = 0 THEN {team}::uuid ELSE {other}::uuid END, 1, 0, \
         CASE WHEN n % 50 = 0 THEN 3 ELSE 2 END, '{spec}', 1, {now} + n * 60000, {now} + n * 60000, \
         CASE WHEN n % 50 = 0 THEN NULL ELSE lpad(n::text, 22, '0') || '.png' END, 1, 1, \
         CASE WHEN n % 50 = 0 THEN 'render_failed' END FROM generate_series(1, 20000) n; \
         UPDATE grab SET env = 0 WHERE status = 3; \
         INSERT INTO delivery (id, endpoint_id, grab_id, event, state, attempt, next_at, created_at) \
         SELECT gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 0, CASE WHEN n % 100 = 0 THEN 0 ELSE 1 END, 1, \
         CASE WHEN n % 100 = 0 THEN n END, n FROM generate_series(1, 20000) n; \
         INSERT INTO team (id, name, status, created_at) \
         SELECT gen_random_uuid(), 'team ' || n, 0, n FROM generate_series(1, 5000) n",
        team = db.literal(team.0),
        other = db.literal(other.0),
        spec = r#"{"url":"https://example.com/","width":1280,"height":720,"format":"png","full_page":false,"delay_ms":0,"selector":null}"#,
        now = NOW.as_ms(),
    );
    db.execute_raw(&history).await.unwrap();
    db.execute_raw("VACUUM ANALYZE").await.unwrap();
    let explain = "DO $$ BEGIN \
        EXECUTE format('ALTER DATABASE %I SET session_preload_libraries = auto_explain', current_database()); \
        EXECUTE format('ALTER DATABASE %I SET auto_explain.log_min_duration = 0', current_database()); END $$";
    db.execute_raw(explain).await.unwrap();
    // The settings apply only to new connections.
    let store = Store::open(&db.url).await.unwrap();
    let minutes = |minutes: u64| NOW + Duration::from_secs(60) * u32::try_from(minutes).unwrap();
    let id = |n: u64| GrabId(format!("00000000-0000-7000-8000-{n:012}").parse().unwrap());
    // The last day of two weeks.
    let ended = store.operator().count_ended(minutes(20_000 - 24 * 60)).await.unwrap();
    assert_eq!(ended.iter().map(|of| of.grabs).sum::<u64>(), 24 * 60 + 1);
    let all = FailureFilter::default();
    assert_eq!(store.operator().list_failed(&all, None, 50).await.unwrap().failures.len(), 50);
    let cursor = FailureCursor { at: minutes(10_000), grab: id(10_000) };
    assert_eq!(store.operator().list_failed(&all, Some(cursor), 50).await.unwrap().failures[0].grab, id(9950));
    assert_eq!(store.operator().list_failed_of_team(team, 10).await.unwrap().len(), 10);
    let after = TeamCursor { created_at: NOW, team };
    assert_eq!(store.operator().list_summaries(&TeamFilter::All, Some(after), 25, minutes(0)).await.unwrap().len(), 25);
    assert_eq!(store.operator().delivery_backlog().await.unwrap().waiting, 200);
    store.close().await;

    let log = db.server_log();
    let plans: Vec<&str> = log.split("plan:\n").skip(1).collect();
    let plan = |words: &str| {
        let found: Vec<&&str> = plans.iter().filter(|plan| plan.contains(words)).collect();
        assert!(!found.is_empty(), "no plan contains {words}:\n{log}");
        found
    };
    for (words, expected) in [
        (r#"COUNT("grab"."finished_at")"#, "Index Only Scan using grab_ended on grab"),
        (r#""grab"."status" = 3 AND "grab"."env" = 0"#, "Index Scan Backward using grab_failed on grab"),
        (r#""grab"."session_id""#, "Index Scan"),
        (r#"ORDER BY "team"."created_at" DESC"#, "using team_list on team"),
        (r#"COUNT("delivery"."id")"#, "on delivery"),
    ] {
        for plan in plan(words) {
            assert!(plan.contains(expected), "expected {expected} in\n{plan}");
            assert!(!plan.contains("Seq Scan"), "{plan}");
        }
    }
    db.execute_raw("DELETE FROM grab").await.unwrap();
    db.finish().await;
}
