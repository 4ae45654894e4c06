//! Grabs that ended, and grabs that wait, inserted without the store.

use anyhow::Result;
use grabd_engine::clock::Clock;
use sea_orm::{ConnectionTrait, Database};

use super::database::OwnDatabase;

/// Inserts grabs that are done, the same number for each team, with their entries in the ledger.
pub(super) async fn add_ended(database: &OwnDatabase, count: u64) -> Result<()> {
    if count == 0 {
        return Ok(());
    }
    let now = Clock::system().now().as_ms();
    let (series, id, key) = (series(database, 1, count), id(database, 7), key(database));
    let grabs = format!(
        "INSERT INTO grab (id, team_id, env, class, status, request, facts, image_key, bytes, execution_ms, attempts, \
         created_at, finished_at) \
         {series} SELECT {id}, bench_team.team_id, 0, 1, 2, sample.request, sample.facts, {key}, 48213, 1830, 1, \
         {now} - {count} + n, {now} - {count} + n + 1830 FROM series \
         JOIN bench_team ON n % teams = number CROSS JOIN (SELECT request, facts FROM grab WHERE status = 2 LIMIT 1) sample"
    );
    let ledger = format!(
        "INSERT INTO ledger (team_id, lot_id, kind, amount, grab_id, at) \
         {series} SELECT team_id, lot_id, 2, -1, {id}, {now} - {count} + n + 1830 FROM series \
         JOIN bench_team ON n % teams = number"
    );
    let spent = "UPDATE credit_lot SET remaining = granted - \
        (SELECT count(*) FROM ledger WHERE lot_id = credit_lot.id AND kind = 2)"
        .to_owned();
    // The stored bytes of a team are counted by a trigger, which is too slow for a single statement in PostgreSQL.
    let (before, after): (&[&str], &[&str]) = match database {
        OwnDatabase::Sqlite(_) => (&[], &[]),
        OwnDatabase::Postgres(_) => (
            &["ALTER TABLE grab DISABLE TRIGGER USER"],
            &[
                "ALTER TABLE grab ENABLE TRIGGER USER",
                "INSERT INTO team_storage (team_id, bytes) SELECT team_id, sum(bytes) FROM grab GROUP BY team_id \
                 ON CONFLICT (team_id) DO UPDATE SET bytes = excluded.bytes",
            ],
        ),
    };
    let mut statements = vec![teams()];
    statements.extend(before.iter().map(|&statement| statement.to_owned()));
    statements.extend([grabs, ledger, spent]);
    statements.extend(after.iter().map(|&statement| statement.to_owned()));
    execute(database, statements).await
}

/// Inserts grabs that wait, the same number for each team.
pub(super) async fn add_waiting(database: &OwnDatabase, count: u64) -> Result<()> {
    if count == 0 {
        return Ok(());
    }
    let now = Clock::system().now().as_ms();
    let (series, id) = (series(database, 1, count), id(database, 8));
    let grabs = format!(
        "INSERT INTO grab (id, team_id, env, class, status, request, attempts, created_at) \
         {series} SELECT {id}, bench_team.team_id, 0, 1, 0, sample.request, 0, {now} FROM series \
         JOIN bench_team ON n % teams = number CROSS JOIN (SELECT request FROM grab WHERE status = 2 LIMIT 1) sample"
    );
    let jobs = format!(
        "INSERT INTO job (grab_id, team_id, account_id, class, vt, not_before, deadline_at, lot_id, attempt) \
         {series} SELECT {id}, team_id, team_id, 1, n, 0, {now} + 3600000, lot_id, 0 FROM series \
         JOIN bench_team ON n % teams = number"
    );
    let held = "UPDATE credit_lot SET held = (SELECT count(*) FROM job WHERE lot_id = credit_lot.id)".to_owned();
    execute(database, vec![teams(), grabs, jobs, held]).await
}

/// Numbers the teams from 0.
fn teams() -> String {
    "CREATE TABLE bench_team AS SELECT row_number() OVER () - 1 AS number, team_id, id AS lot_id, \
     count(*) OVER () AS teams FROM credit_lot"
        .to_owned()
}

/// A `WITH` clause for the numbers `n` from `first` to `last`.
fn series(database: &OwnDatabase, first: u64, last: u64) -> String {
    match database {
        OwnDatabase::Sqlite(_) => {
            format!("WITH RECURSIVE series(n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM series WHERE n < {last})")
        }
        OwnDatabase::Postgres(_) => format!("WITH series AS (SELECT generate_series({first}, {last}) AS n)"),
    }
}

/// An id that sorts by `n`, as ids sort by time. `kind` is a hexadecimal digit.
fn id(database: &OwnDatabase, kind: u8) -> String {
    match database {
        OwnDatabase::Sqlite(_) => format!("unhex(printf('%012x7%03x8%015x', n, {kind}, n))"),
        OwnDatabase::Postgres(_) => {
            format!("(lpad(to_hex(n), 12, '0') || '700{kind}8' || lpad(to_hex(n), 15, '0'))::uuid")
        }
    }
}

/// The name of an image.
fn key(database: &OwnDatabase) -> &'static str {
    match database {
        OwnDatabase::Sqlite(_) => "printf('%032x.png', n)",
        OwnDatabase::Postgres(_) => "lpad(to_hex(n), 32, '0') || '.png'",
    }
}

async fn execute(database: &OwnDatabase, statements: Vec<String>) -> Result<()> {
    let connection = Database::connect(&database.url()).await?;
    for statement in statements {
        connection.execute_unprepared(&statement).await?;
    }
    connection.execute_unprepared("DROP TABLE bench_team").await?;
    let statistics = match database {
        OwnDatabase::Sqlite(_) => "PRAGMA wal_checkpoint(TRUNCATE)",
        OwnDatabase::Postgres(_) => "VACUUM ANALYZE",
    };
    connection.execute_unprepared(statistics).await?;
    Ok(connection.close().await?)
}
