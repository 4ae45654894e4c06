//! What the service does with many monitors: in a minute in which none is due, and in one in which many are.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use grabd_domain::Timestamp;
use grabd_engine::clock::Clock;
use sea_orm::DatabaseConnection;
use tokio::time::sleep;

use super::connection::{column, connect, count};
use super::copies;
use crate::markdown::table;
use crate::measure::Sample;
use crate::service::{DataDirectory, Service};

/// Time for the start of the service and its browsers, which is not measured. Nothing says when a browser has become idle.
const SETTLE: Duration = Duration::from_secs(30);
/// How long processor time is measured.
const MINUTE: Duration = Duration::from_secs(60);
/// How long the ends of runs are waited for after the last due time.
const LIMIT: Duration = Duration::from_secs(5 * 60);
/// How often the ended runs are counted.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Time for runs that should not be there: no event says that something does not happen.
const AFTERWARDS: Duration = Duration::from_secs(5);

/// What must not happen, and queries for how often it did. Due monitors have the name `due`.
const FAULTS: [(&str, &str); 5] = [
    (
        "due monitors without a capture",
        "SELECT count(*) FROM monitors WHERE name = 'due' AND NOT EXISTS (SELECT 1 FROM monitor_runs \
         WHERE monitor_id = monitors.id AND outcome IN (1, 2, 3) AND grab_id IS NOT NULL)",
    ),
    (
        "monitors with more than one run",
        "SELECT count(*) FROM (SELECT 1 FROM monitor_runs GROUP BY monitor_id HAVING count(*) > 1)",
    ),
    (
        "captures without a run",
        "SELECT count(*) FROM grab WHERE id NOT IN (SELECT grab_id FROM monitor_runs \
         WHERE grab_id IS NOT NULL)",
    ),
    (
        "runs of monitors that were not due",
        "SELECT count(*) FROM monitor_runs JOIN monitors ON monitors.id = monitor_id WHERE name <> 'due'",
    ),
    ("failed, missed and unfinished runs", "SELECT count(*) FROM monitor_runs WHERE outcome NOT IN (1, 2, 3)"),
];

/// Measures a service without monitors, and one with `far` monitors that are not due and `due` that are.
pub(super) async fn measure(far: u32, due: u32) -> Result<()> {
    eprintln!("monitors: a minute without any");
    let service = Service::start().await?;
    sleep(SETTLE).await;
    let before = service.tree().own_cpu();
    sleep(MINUTE).await;
    let without = service.tree().own_cpu() - before;
    service.stop().await?;

    let data = DataDirectory::create(&[])?;
    let began = Instant::now();
    let from = copies::fill(&data.database(), far, due, SETTLE + MINUTE).await?;
    eprintln!("monitors: {far} and {due} inserted in {:.1} s", began.elapsed().as_secs_f64());
    let service = Service::start_on(data, &[])?;
    wait_until(from - MINUTE).await?;
    let before = service.tree().own_cpu();
    eprintln!("monitors: a minute in which none is due");
    wait_until(from).await?;
    let at_rest = service.tree().own_cpu() - before;

    eprintln!("monitors: a minute in which {due} are due");
    let before = service.tree().own_cpu();
    let database = connect(&service.database()).await?;
    wait_for_runs(&database, due, from + MINUTE + LIMIT).await?;
    let (busy, took) = (service.tree().own_cpu() - before, Clock::system().now().since(from));
    sleep(AFTERWARDS).await;

    println!("\nProcessor time of the service, without its browsers:\n");
    let seconds = |what: &str, length: Duration, cpu: Duration| {
        [what.to_owned(), format!("{:.0}", length.as_secs_f64()), format!("{:.2}", cpu.as_secs_f64())].to_vec()
    };
    print!(
        "{}",
        table(&[
            ["", "seconds", "processor seconds"].map(str::to_owned).to_vec(),
            seconds("no monitors", MINUTE, without),
            seconds(&format!("{far} monitors, none of them due"), MINUTE, at_rest),
            seconds(&format!("{due} of them due within a minute, until the last run has ended"), took, busy),
        ])
    );
    print_delays(&database).await?;
    let are_right = print_faults(&database).await?;
    database.close().await?;
    service.stop().await?;
    ensure!(are_right, "some runs are missing, or were made twice");
    Ok(())
}

/// Waits for a time that is still to come.
async fn wait_until(at: Timestamp) -> Result<()> {
    let now = Clock::system().now();
    ensure!(now < at, "the service took longer to start than the {} s for it", SETTLE.as_secs());
    sleep(at.since(now)).await;
    Ok(())
}

/// Waits until this many runs have ended. Those that are missing after the limit are counted later.
async fn wait_for_runs(database: &DatabaseConnection, due: u32, limit: Timestamp) -> Result<()> {
    let mut ended = 0;
    while ended < i64::from(due) && Clock::system().now() < limit {
        sleep(POLL_INTERVAL).await;
        ended = count(database, "SELECT count(*) FROM monitor_runs WHERE outcome <> 0").await?;
    }
    Ok(())
}

/// Prints how long after their due times runs began and ended.
async fn print_delays(database: &DatabaseConnection) -> Result<()> {
    println!("\nMilliseconds after the due time of a run:\n");
    let mut rows = vec![["", "p50", "p99", "longest"].map(str::to_owned).to_vec()];
    for (what, at) in [("its start", "claimed_at"), ("its end", "finished_at")] {
        let query = format!("SELECT {at} - due_at FROM monitor_runs WHERE {at} IS NOT NULL");
        let mut sample = Sample::default();
        for ms in column::<i64>(database, &query).await? {
            sample.add(Duration::from_millis(u64::try_from(ms).unwrap_or(0)));
        }
        let figures = [0.5, 0.99, 1.0].map(|quantile| format!("{:.0}", sample.quantile(quantile)));
        rows.push(std::iter::once(what.to_owned()).chain(figures).collect());
    }
    print!("{}", table(&rows));
    Ok(())
}

/// Prints how often what must not happen has happened. Returns whether it never did.
async fn print_faults(database: &DatabaseConnection) -> Result<bool> {
    println!("\nWhat must be zero:\n");
    let mut rows = vec![["", "number"].map(str::to_owned).to_vec()];
    let mut are_right = true;
    for (what, query) in FAULTS {
        let number = count(database, query).await?;
        are_right &= number == 0;
        rows.push(vec![what.to_owned(), number.to_string()]);
    }
    print!("{}", table(&rows));
    Ok(are_right)
}
