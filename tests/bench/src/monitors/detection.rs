//! Which changes of pages monitors find, and how often they report one where nothing has changed for a reader.
//!
//! A run of each monitor is forced in each round, by a due time that is written to the database.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use grabd_engine::clock::Clock;
use grabd_tests::harness::ALLOWED;
use grabd_tests::scenario::Customer;
use sea_orm::{ConnectionTrait, DatabaseConnection};
use serde_json::Value;
use tokio::time::sleep;

use super::changing_site::{Change, ChangingSite, Moving};
use super::connection::connect;
use super::score::Score;
use super::watches::{WATCHES, Watch};
use crate::markdown::table;
use crate::service::Service;

/// No round begins after this time.
const TIME_LIMIT: Duration = Duration::from_secs(8 * 60);
/// How long the runs of a round may take.
const ROUND_LIMIT: Duration = Duration::from_secs(2 * 60);
/// How often the monitors are read.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Settings that all monitors and their captures fit in.
const SETTINGS: [(&str, &str); 2] = [("GRABD_MONITORS__PER_TEAM", "100"), ("GRABD_LIMITS__ASYNC_QUEUE", "100")];

/// A monitor of a page.
struct Watched {
    watch: &'static Watch,
    moving: Moving,
    id: String,
    /// The id of its last run that has ended.
    last_run: String,
    score: Score,
}

/// The end of a run.
struct Ended {
    run: String,
    outcome: String,
    is_alerted: bool,
}

/// Lets all monitors run `rounds` times after their first run, and prints what they have found.
pub(super) async fn measure(rounds: u32) -> Result<()> {
    let began = Instant::now();
    let site = ChangingSite::start(ALLOWED).await?;
    let service = Service::start_with(&SETTINGS).await?;
    let customer = service.customer();
    let mut monitors = Vec::new();
    for watch in &WATCHES {
        for moving in Moving::ALL {
            let id = create(&customer, &watch.request(moving, &site.url(moving))).await?;
            monitors.push(Watched { watch, moving, id, last_run: String::new(), score: Score::default() });
        }
    }
    let first = end_of_runs(&customer, &mut monitors).await?;
    for (monitor, ended) in monitors.iter().zip(&first) {
        let (name, outcome) = (monitor.watch.name, &ended.outcome);
        ensure!(outcome == "first", "{name}: the first run of {} is {outcome}", monitor.moving.name());
    }
    eprintln!("detection: {} monitors have their baselines", monitors.len());

    let database = connect(&service.database()).await?;
    let mut done = 0;
    for round in 1..=rounds {
        if began.elapsed() > TIME_LIMIT {
            eprintln!("detection: stopped after {done} rounds, since {} s have passed", TIME_LIMIT.as_secs());
            break;
        }
        site.begin(round);
        let change = Change::in_round(round);
        let started = Instant::now();
        make_due(&database).await?;
        let ended = end_of_runs(&customer, &mut monitors).await?;
        for (monitor, ended) in monitors.iter_mut().zip(&ended) {
            match ended.outcome.as_str() {
                "first" | "same" | "changed" => {
                    let change = change.filter(|change| monitor.watch.finds.contains(change));
                    monitor.score.add(change, ended.is_alerted);
                }
                _ => monitor.score.failed += 1,
            }
        }
        done = round;
        eprintln!(
            "detection: round {round} of {rounds}, {} changed, {} alerts of {} monitors, {:.1} s",
            change.map_or("nothing", Change::name),
            ended.iter().filter(|ended| ended.is_alerted).count(),
            ended.len(),
            started.elapsed().as_secs_f64()
        );
    }
    database.close().await?;
    service.stop().await?;
    print_found(done, &monitors);
    print_kinds(&monitors);
    print_false_alerts(&monitors);
    Ok(())
}

/// Creates a monitor, which is due at once. Returns its id.
async fn create(customer: &Customer, body: &Value) -> Result<String> {
    let request = customer.client.post(format!("{}/monitors", customer.base)).bearer_auth(&customer.key).json(body);
    let response = request.send().await?;
    let status = response.status().as_u16();
    let monitor: Value = response.json().await?;
    ensure!(status == 201, "{status}: {monitor}");
    Ok(monitor["id"].as_str().context("an id")?.to_owned())
}

/// Makes all monitors due now.
async fn make_due(database: &DatabaseConnection) -> Result<()> {
    let now = Clock::system().now().as_ms();
    database.execute_unprepared(&format!("UPDATE monitors SET next_run_at = {now} WHERE state = 0")).await?;
    Ok(())
}

/// Waits until each monitor has a run that has ended and was not seen before. Returns these runs, in the order of the monitors.
async fn end_of_runs(customer: &Customer, monitors: &mut [Watched]) -> Result<Vec<Ended>> {
    let until = Instant::now() + ROUND_LIMIT;
    loop {
        let mut ended = ended_runs(customer).await?;
        let is_new = |monitor: &Watched| ended.get(&monitor.id).is_some_and(|ended| ended.run != monitor.last_run);
        if monitors.iter().all(is_new) {
            let runs = monitors.iter_mut().map(|monitor| {
                let run = ended.remove(&monitor.id).context("a run")?;
                monitor.last_run.clone_from(&run.run);
                Ok(run)
            });
            return runs.collect();
        }
        if Instant::now() > until {
            bail!("the runs of a round have not ended within {} s", ROUND_LIMIT.as_secs());
        }
        sleep(POLL_INTERVAL).await;
    }
}

/// The last runs of monitors that have ended, by the ids of the monitors.
async fn ended_runs(customer: &Customer) -> Result<HashMap<String, Ended>> {
    let url = format!("{}/monitors?limit=100", customer.base);
    let response = customer.client.get(url).bearer_auth(&customer.key).send().await?;
    let status = response.status().as_u16();
    let listed: Value = response.json().await?;
    ensure!(status == 200, "{status}: {listed}");
    let mut ended = HashMap::new();
    for monitor in listed["data"].as_array().context("a list")? {
        let run = &monitor["last_run"];
        let (Some(id), Some(run_id)) = (monitor["id"].as_str(), run["id"].as_str()) else { continue };
        let outcome = run["outcome"].as_str().context("an outcome")?;
        if outcome != "running" {
            let is_alerted = run["alerted"].as_bool().unwrap_or_default();
            let run = Ended { run: run_id.to_owned(), outcome: outcome.to_owned(), is_alerted };
            ended.insert(id.to_owned(), run);
        }
    }
    Ok(ended)
}

/// The sum of the scores of the monitors with this watch.
fn sum(watch: &Watch, monitors: &[Watched]) -> Score {
    Score::sum(monitors.iter().filter(|of| of.watch.name == watch.name).map(|of| &of.score))
}

/// Prints the counts of each watch over all pages.
fn print_found(rounds: u32, monitors: &[Watched]) {
    println!("\nChanges of {} pages in {rounds} rounds, and alerts about them:\n", Moving::ALL.len());
    let heads = ["What is compared", "made", "found", "found later", "missed", "runs without a change", "false alerts"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for watch in &WATCHES {
        let score = sum(watch, monitors);
        let counts =
            [score.made.len(), score.found.len(), score.late, score.missed.len(), score.quiet, score.false_alerts];
        rows.push(std::iter::once(watch.name.to_owned()).chain(counts.map(|count| count.to_string())).collect());
    }
    print!("{}", table(&rows));
    let failed: usize = monitors.iter().map(|monitor| monitor.score.failed).sum();
    println!("\n{failed} runs failed or were missed.");
}

/// Prints which kinds of changes were found at once.
fn print_kinds(monitors: &[Watched]) {
    println!("\nFound in the round of the change, by what has changed:\n");
    let heads = std::iter::once("What is compared").chain(Change::ALL.map(Change::name));
    let mut rows = vec![heads.map(str::to_owned).collect::<Vec<_>>()];
    for watch in &WATCHES {
        let score = sum(watch, monitors);
        let count = |changes: &[Change], kind: Change| changes.iter().filter(|change| **change == kind).count();
        let cells = Change::ALL.map(|kind| match count(&score.made, kind) {
            0 => "-".to_owned(),
            made => format!("{} of {made}", count(&score.found, kind)),
        });
        rows.push(std::iter::once(watch.name.to_owned()).chain(cells).collect());
    }
    print!("{}", table(&rows));
}

/// Prints the false alerts by what moves on the page.
fn print_false_alerts(monitors: &[Watched]) {
    println!("\nFalse alerts, by what moves on the page:\n");
    let heads = std::iter::once("What is compared").chain(Moving::ALL.map(Moving::name));
    let mut rows = vec![heads.map(str::to_owned).collect::<Vec<_>>()];
    for watch in &WATCHES {
        let of_watch = monitors.iter().filter(|of| of.watch.name == watch.name);
        let cells = of_watch.map(|of| format!("{} of {}", of.score.false_alerts, of.score.quiet));
        rows.push(std::iter::once(watch.name.to_owned()).chain(cells).collect());
    }
    print!("{}", table(&rows));
}
