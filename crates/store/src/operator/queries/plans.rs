//! Checks that the operator queries use indexes on SQLite. `tests/store/operator_plans.rs` checks PostgreSQL.

use grabd_domain::ids::{GrabId, TeamId};
use grabd_domain::{ErrorCause, Timestamp};
use sea_orm::{ConnectionTrait, DbBackend, EntityTrait, QueryTrait, Select, Statement};
use uuid::Uuid;

use super::failures::{FailureCursor, FailureFilter, failed_of, matching};
use super::figures::{by_class, by_team, done, ended, oldest, pending_deliveries};
use super::teams::{TeamCursor, TeamFilter, captures, teams};
use crate::database::Database;

/// SQLite's query plan as text.
async fn plan<E: EntityTrait>(database: &Database, query: Select<E>) -> String {
    let query = query.build(DbBackend::Sqlite);
    let values = query.values.unwrap_or_else(|| sea_orm::Values(Vec::new()));
    let explain =
        Statement::from_sql_and_values(DbBackend::Sqlite, format!("EXPLAIN QUERY PLAN {}", query.sql), values);
    let rows = database.reader().query_all_raw(explain).await.expect("query plan");
    let steps: Vec<String> = rows.iter().map(|row| row.try_get("", "detail").expect("plan step")).collect();
    steps.join("\n")
}

#[tokio::test]
async fn operator_queries_use_indexes() {
    let database = Database::open("sqlite::memory:").await.expect("open the database");
    database.migrate().await.expect("migrate");
    // A few thousand grabs of two teams, and their statistics.
    let grabs = "INSERT INTO grab (id, team_id, env, class, status, request, attempts, created_at, finished_at, \
         image_key, bytes, execution_ms, error_code) \
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) \
         SELECT randomblob(16), CASE i % 5 WHEN 0 THEN zeroblob(16) ELSE x'01' END, 0, 0, \
         CASE i % 50 WHEN 0 THEN 3 ELSE 2 END, '{}', 1, i, i, \
         CASE i % 50 WHEN 0 THEN NULL ELSE 'key ' || i END, 1, 1, CASE i % 50 WHEN 0 THEN 'render_failed' END FROM n";
    let deliveries = "INSERT INTO delivery (id, endpoint_id, grab_id, event, state, attempt, next_at, created_at) \
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) \
         SELECT randomblob(16), zeroblob(16), randomblob(16), 0, CASE i % 100 WHEN 0 THEN 0 ELSE 1 END, 1, \
         CASE i % 100 WHEN 0 THEN i END, i FROM n";
    for statement in [grabs, deliveries, "ANALYZE"] {
        database.reader().execute_unprepared(statement).await.expect("insert rows");
    }
    let (team, at) = (TeamId(Uuid::nil()), Timestamp::from_ms(4000));
    let cursor = FailureCursor { at, grab: GrabId(team.0) };
    let all = FailureFilter::default();
    let of_day = FailureFilter { since: Some(at), until: Some(Timestamp::from_ms(4500)), ..all.clone() };
    let teams_after = |filter| teams(&filter, Some(TeamCursor { created_at: at, team }), 25);
    for (plan, expected) in [
        (plan(&database, ended(at)).await, "SEARCH grab USING COVERING INDEX grab_ended (finished_at>?)"),
        (plan(&database, done(at, 50)).await, "SEARCH grab USING INDEX grab_ended (finished_at>?)"),
        (plan(&database, matching(&all, None, 50)).await, "SCAN grab USING INDEX grab_failed"),
        (
            plan(&database, matching(&all, Some(cursor), 50)).await,
            "SEARCH grab USING INDEX grab_failed ((finished_at,id)<(?,?))",
        ),
        (plan(&database, matching(&of_day, None, 50)).await, "INDEX grab_failed (finished_at>? AND finished_at<?)"),
        (
            plan(&database, failed_of(team, 10)).await,
            "SEARCH grab USING INDEX grab_list_status (team_id=? AND env=? AND status=?)",
        ),
        (
            plan(&database, captures(vec![team.0], at)).await,
            "SEARCH grab USING COVERING INDEX grab_list_status (team_id=? AND env=? AND status=? AND created_at>?)",
        ),
        (plan(&database, teams_after(TeamFilter::All)).await, "USING INDEX team_list ((created_at,id)<(?,?))"),
        (plan(&database, teams_after(TeamFilter::NameContains("a".into()))).await, "USING INDEX team_list"),
        (plan(&database, pending_deliveries()).await, "delivery USING INDEX delivery_"),
    ] {
        assert!(plan.contains(expected), "expected {expected} in:\n{plan}");
        assert!(!plan.contains("ORDER BY"), "plan sorts:\n{plan}");
    }
    // A search looks at a limited number of failures, and sorts those that it finds.
    let of_team = FailureFilter { teams: Some(vec![team]), ..all.clone() };
    let by_target = FailureFilter { cause: Some(ErrorCause::Target), ..all };
    for filter in [of_team, by_target] {
        let selective = plan(&database, matching(&filter, Some(cursor), 50)).await;
        assert!(selective.contains("INDEX grab_failed ((finished_at,id)<(?,?))"), "{selective}");
        assert!(!selective.contains("SCAN grab"), "{selective}");
    }
    for plan in [plan(&database, by_class()).await, plan(&database, by_team(10)).await, plan(&database, oldest()).await]
    {
        assert!(!plan.contains("SCAN grab"), "{plan}");
    }
    database.close().await;
}
