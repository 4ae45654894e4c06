//! Many monitors of a test key in the database, copied without the store from one that the store has created.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use grabd_domain::Timestamp;
use grabd_domain::capture::CaptureRequest;
use grabd_domain::credentials::{Environment, Principal};
use grabd_domain::ids::MonitorId;
use grabd_domain::monitor::{MonitorRequest, MonitorSpec, Phase};
use grabd_engine::accounts;
use grabd_engine::clock::Clock;
use grabd_engine::monitors::MonitorLimits;
use grabd_engine::random;
use grabd_store::Store;
use grabd_store::monitors::{CreateMonitorOutcome, NewMonitor};
use sea_orm::{ConnectionTrait, DatabaseConnection};

use super::connection::{column, connect};

/// The name of monitors that are due within the minute.
const DUE: &str = "due";
/// The name of the others.
const FAR: &str = "far";
/// When the others are due: not during the measurement.
const FAR_AWAY: Duration = Duration::from_secs(14 * 24 * 60 * 60);
/// A due time that is the time of the creation has another rule for the next one, which is not what is measured.
const AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// Copies of one kind, numbered by `n` from 1.
struct Copies {
    name: &'static str,
    /// Part of the ids, so that those of two kinds differ.
    kind: u32,
    count: u32,
    /// The environment: SQL with `n`.
    environment: &'static str,
    /// The due time: SQL with `n`.
    next_run_at: String,
}

/// Inserts `far` monitors that are not due for two weeks, and then `due` that are due within a minute, which begins after `lead`.
/// Returns when that is.
pub(super) async fn fill(file: &Path, far: u32, due: u32, lead: Duration) -> Result<Timestamp> {
    let sample = create_sample(file).await?;
    let database = connect(file).await?;
    let columns: Vec<String> = column(&database, "SELECT name FROM pragma_table_info('monitors')").await?;
    let later = (Clock::system().now() + FAR_AWAY).as_ms();
    let of_both_environments =
        Copies { name: FAR, kind: 1, count: far, environment: "n % 2", next_run_at: format!("{later} + n") };
    insert(&database, &columns, sample, &of_both_environments).await?;
    // A large insert takes a while, which is not part of the lead.
    let from = Clock::system().now() + lead;
    let next_run_at = format!("{} + (n - 1) * 60000 / {due}", from.as_ms());
    let of_test_keys = Copies { name: DUE, kind: 2, count: due, environment: "1", next_run_at };
    insert(&database, &columns, sample, &of_test_keys).await?;
    database.execute_unprepared(&format!("DELETE FROM monitors WHERE id = {}", literal(sample))).await?;
    database.execute_unprepared("PRAGMA wal_checkpoint(TRUNCATE)").await?;
    database.close().await?;
    Ok(from)
}

/// Creates a team with one monitor.
async fn create_sample(file: &Path) -> Result<MonitorId> {
    let store = Store::open(&format!("sqlite://{}", file.display())).await?;
    let now = Clock::system().now();
    let team = accounts::create_team(&store, "monitors", 0, now).await?;
    let capture = CaptureRequest { url: Some("https://example.com/".to_owned()), ..CaptureRequest::default() };
    let request = MonitorRequest { capture: Some(capture), every: Some("30d".to_owned()), ..MonitorRequest::default() };
    let id = random::monitor_id(now);
    let new = NewMonitor {
        id,
        team: team.team,
        environment: Environment::Test,
        creator: Principal::Key(team.test_id),
        spec: MonitorSpec::parse(&request, MonitorLimits::default().shortest)?,
        secrets: None,
        phase: Phase::of(id),
        limit: 1,
        kept_limit: u64::MAX,
        now,
    };
    let created = store.monitors().create(new).await?;
    ensure!(matches!(created, CreateMonitorOutcome::Created(_)), "no monitor was created: {created:?}");
    store.close().await;
    Ok(id)
}

/// Copies the sample. All columns but these are those of the sample.
async fn insert(database: &DatabaseConnection, columns: &[String], sample: MonitorId, copies: &Copies) -> Result<()> {
    let Copies { name, kind, count, environment, next_run_at } = copies;
    let created_at = (Clock::system().now() - AGE).as_ms();
    let values = columns.iter().map(|column| match column.as_str() {
        "id" => format!("unhex(printf('%012x7%03x8%015x', n, {kind}, n))"),
        "name" => format!("'{name}'"),
        "env" => (*environment).to_owned(),
        "phase" => format!("n % {}", u32::from(Phase::MAX) + 1),
        "created_at" | "updated_at" => created_at.to_string(),
        "next_run_at" => next_run_at.clone(),
        other => format!("sample.\"{other}\""),
    });
    let values = values.collect::<Vec<_>>().join(", ");
    let names = columns.iter().map(|column| format!("\"{column}\"")).collect::<Vec<_>>().join(", ");
    let statement = format!(
        "INSERT INTO monitors ({names}) \
         WITH RECURSIVE series(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM series WHERE n < {count}) \
         SELECT {values} FROM series JOIN monitors sample ON sample.id = {}",
        literal(sample)
    );
    database.execute_unprepared(&statement).await?;
    Ok(())
}

/// The id in SQL.
fn literal(id: MonitorId) -> String {
    format!("X'{}'", id.0.simple())
}
