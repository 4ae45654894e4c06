//! Checks that filtered reads of the audit trail use indexes on SQLite.

use grabd_domain::Timestamp;
use grabd_domain::ids::TeamId;
use sea_orm::{ConnectionTrait, DbBackend, QueryTrait, Statement, Values};
use uuid::Uuid;

use super::search::{AuditFilter, matching};
use crate::database::Database;

#[tokio::test]
async fn filters_of_the_audit_trail_use_indexes() {
    let database = Database::open("sqlite::memory:").await.expect("open the database");
    database.migrate().await.expect("migrate");
    let entries = "INSERT INTO audit (at, actor, action, target, team_id) \
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) \
         SELECT i, 'user:' || (i % 100), 'action.' || (i % 50), '', \
         CASE WHEN i % 3 > 0 THEN CAST(printf('%016d', i % 200) AS BLOB) END FROM n";
    for statement in [entries, "ANALYZE"] {
        database.reader().execute_unprepared(statement).await.expect("insert rows");
    }
    let of_team = AuditFilter { teams: Some(vec![TeamId(Uuid::nil())]), ..AuditFilter::default() };
    let of_actor = AuditFilter { actor: Some("user:7".to_owned()), ..AuditFilter::default() };
    let of_action = AuditFilter { actions: Some(vec!["action.7"]), ..AuditFilter::default() };
    let day = [Timestamp::from_ms(4990), Timestamp::from_ms(4999)];
    let of_day = AuditFilter { since: Some(day[0]), until: Some(day[1]), ..AuditFilter::default() };
    for (filter, expected, is_sorted) in [
        (AuditFilter::default(), "USING INTEGER PRIMARY KEY", true),
        (of_team, "USING INDEX audit_team (team_id=?", true),
        (of_actor, "USING INDEX audit_actor (actor=?", true),
        (of_action, "USING INDEX audit_action (action=?", true),
        // The entries of a day are few enough to be sorted.
        (of_day, "USING INDEX audit_age (at>? AND at<?)", false),
    ] {
        let before = is_sorted.then_some(4000);
        let query = matching(&filter, before, 51).build(DbBackend::Sqlite);
        let explain = format!("EXPLAIN QUERY PLAN {}", query.sql);
        let values = query.values.unwrap_or_else(|| Values(Vec::new()));
        let explain = Statement::from_sql_and_values(DbBackend::Sqlite, explain, values);
        let rows = database.reader().query_all_raw(explain).await.expect("query plan");
        let steps: Vec<String> = rows.iter().map(|row| row.try_get("", "detail").expect("plan step")).collect();
        let plan = steps.join("\n");
        assert!(plan.contains(expected), "{filter:?}: expected {expected} in:\n{plan}");
        assert!(!is_sorted || !plan.contains("ORDER BY"), "{filter:?}: plan sorts:\n{plan}");
    }
    database.close().await;
}
