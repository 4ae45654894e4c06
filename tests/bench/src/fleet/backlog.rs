//! Asynchronous grabs that wait in the queue, inserted without the service.

use anyhow::Result;
use sea_orm::{ConnectionTrait, Database};

/// The options of a grab, as they are stored.
const SPEC: &str = r#"{"url":"http://127.0.0.2/page","width":1280,"height":720,"format":"png","full_page":false,"delay_ms":0,"selector":null}"#;

/// Inserts grabs that wait, the same number for each team.
pub(super) async fn insert(url: &str, queued: u32) -> Result<()> {
    let database = Database::connect(url).await?;
    let statements = [
        "CREATE TABLE backlog AS SELECT row_number() OVER () - 1 AS number, team_id, id AS lot_id, \
         count(*) OVER () AS teams FROM credit_lot"
            .to_owned(),
        format!(
            "CREATE TABLE backlog_grab AS SELECT gen_random_uuid() AS id, n, team_id, lot_id \
             FROM generate_series(1, {queued}) n JOIN backlog ON n % teams = number"
        ),
        format!(
            "INSERT INTO grab (id, team_id, env, class, status, request, attempts, created_at) \
             SELECT id, team_id, 0, 1, 0, '{SPEC}', 0, (extract(epoch FROM now()) * 1000)::bigint FROM backlog_grab"
        ),
        "INSERT INTO job (grab_id, team_id, account_id, class, vt, not_before, deadline_at, lot_id, attempt) \
         SELECT id, team_id, team_id, 1, n, 0, (extract(epoch FROM now()) * 1000)::bigint + 3000000, lot_id, 0 \
         FROM backlog_grab"
            .to_owned(),
        "UPDATE credit_lot SET held = (SELECT count(*) FROM job WHERE lot_id = credit_lot.id)".to_owned(),
        "DROP TABLE backlog, backlog_grab".to_owned(),
        "VACUUM ANALYZE".to_owned(),
    ];
    for statement in statements {
        database.execute_unprepared(&statement).await?;
    }
    Ok(database.close().await?)
}
