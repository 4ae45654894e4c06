//! Checks that list pages use indexes on PostgreSQL. The SQLite test is next to the query.

use grabd_domain::credentials::Environment::{Live, Test};
use grabd_domain::grabs::{Class, Status};
use grabd_domain::ids::GrabId;
use grabd_store::Store;
use grabd_store::grabs::{Created, Cursor, PageRequest};
use uuid::Uuid;

use crate::harness::{NOW, TestDb};

/// Every page uses an index in index order, with or without a status and in both directions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn list_pages_use_an_index_without_sorting() {
    let db = TestDb::postgres().await;
    let team = db.team(10).await;
    let history = format!(
        "INSERT INTO grab (id, team_id, env, class, status, request, attempts, created_at, finished_at, image_key, \
         bytes, execution_ms, error_code) \
         SELECT ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, {team}, 1, 0, \
         CASE WHEN n % 500 = 0 THEN 3 ELSE 2 END, '{spec}', 1, {now} + n, {now} + n, \
         CASE WHEN n % 500 = 0 THEN NULL ELSE lpad(n::text, 22, '0') || '.png' END, 1, 1, \
         CASE WHEN n % 500 = 0 THEN 'render_failed' END FROM generate_series(1, 5000) n",
        team = db.literal(team.0),
        spec = r#"{"url":"https://example.com/","width":1280,"height":720,"format":"png","full_page":false,"delay_ms":0,"selector":null}"#,
        now = NOW.as_ms(),
    );
    // Test grabs, which need no credits.
    db.execute_raw(&history).await.unwrap();
    for class in [Class::Sync, Class::Async] {
        assert_eq!(db.store.grabs().create(db.new_grab(team, class)).await.unwrap(), Created::Pending);
    }
    db.execute_raw("VACUUM ANALYZE").await.unwrap();
    let explain = "DO $$ BEGIN \
        EXECUTE format('ALTER DATABASE %I SET session_preload_libraries = auto_explain', current_database()); \
        EXECUTE format('ALTER DATABASE %I SET auto_explain.log_min_duration = 0', current_database()); \
        EXECUTE format('ALTER DATABASE %I SET plan_cache_mode = force_generic_plan', current_database()); END $$";
    db.execute_raw(explain).await.unwrap();
    // The settings apply only to new connections.
    let store = Store::open(&db.url).await.unwrap();
    let middle = GrabId(Uuid::parse_str("00000000-0000-7000-8000-000000002500").unwrap());
    let statuses = [None, Some(Status::Done), Some(Status::Failed), Some(Status::Pending), Some(Status::Processing)];
    let mut pages = 0;
    for status in statuses {
        for cursor in [None, Some(Cursor::After(middle)), Some(Cursor::Before(middle))] {
            let page = PageRequest { limit: 25, status, cursor, ..PageRequest::default() };
            let listed = store.grabs().list_grabs(team, Test, page).await;
            let count = listed.unwrap().expect("known cursor").grabs.len();
            let expected = match (status, cursor) {
                (None | Some(Status::Done), _) => 25,
                (Some(Status::Failed), None) => 10,
                (Some(Status::Failed), Some(Cursor::After(_))) => 4,
                (Some(Status::Failed), Some(Cursor::Before(_))) => 5,
                (Some(Status::Pending | Status::Processing), _) => 0,
            };
            assert_eq!(count, expected, "{status:?} {cursor:?}");
            pages += 1;
        }
    }
    store.close().await;

    let log = db.server_log();
    let plans: Vec<&str> =
        log.split("plan:\n").skip(1).filter(|plan| plan.contains(r#"ORDER BY "grab"."created_at""#)).collect();
    assert_eq!(plans.len(), pages, "{log}");
    for plan in plans {
        let open = plan.contains(r#""job"."grab_id" IS NOT NULL"#);
        let has_status = plan.contains(r#""grab"."status" ="#);
        let index = if has_status { "grab_list_status on grab" } else { "grab_list on grab" };
        // There are few jobs, so the plan for open grabs may start from them and sort.
        let jobs_first = open && plan.contains("Scan using grab_pkey on grab");
        assert!(jobs_first || plan.contains(index), "{plan}");
        assert!(open || !plan.contains("Sort"), "{plan}");
        assert!(!plan.contains("Seq Scan on grab"), "{plan}");
    }
    let live = PageRequest { limit: 25, status: Some(Status::Pending), cursor: None, ..PageRequest::default() };
    assert_eq!(db.store.grabs().list_grabs(team, Live, live).await.unwrap().unwrap().grabs.len(), 2);
    db.finish().await;
}
