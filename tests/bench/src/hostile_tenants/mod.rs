//! How long a paying team waits while hostile accounts, which pay nothing, do what costs the service most.
//!
//! `kinds/` has one file for each kind of attack. To add one, write its [`Kind`] and list it in [`kinds::ALL`].

mod dead_endpoints;
mod kind;
mod kinds;

use std::time::{Duration, Instant};

use clap::Args;
use futures::future::join_all;
use grabd_engine::accounts;
use grabd_engine::clock::Clock;
use grabd_tests::harness::ALLOWED;
use grabd_tests::site::Site;
use serde_json::json;

use crate::measure::Sample;
use crate::service::{Groups, Service};
use kind::{Field, Kind, PAUSE};

const SLOTS: &str = "4";
const TINY: &str = "/tiny";
/// Time for the first hostile captures to reach their page.
const HEAD_START: Duration = Duration::from_secs(2);
/// The longest acceptable median: this many times that without hostile accounts, and this much more.
const FACTOR: f64 = 1.5;
const MORE_MS: f64 = 500.0;

/// What is measured.
#[derive(Args)]
pub(crate) struct Options {
    /// Seconds for each number of hostile accounts.
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u64).range(5..=600))]
    seconds: u64,
    /// Numbers of hostile accounts. The first one is compared with.
    #[arg(long, value_delimiter = ',', default_values_t = [0, 1, 4, 16])]
    accounts: Vec<usize>,
    /// Only these kinds.
    kinds: Vec<String>,
}

/// What the paying team saw.
#[derive(Default)]
struct Outcome {
    took: Sample,
    done: usize,
    /// Creates that failed after a wait.
    failed: usize,
    /// Creates that were refused at once.
    refused: usize,
}

/// Prints a table of the paying team's captures for each kind, with and without control groups where there are any.
pub(crate) async fn measure(options: &Options) -> anyhow::Result<()> {
    let Options { seconds, accounts, kinds } = options;
    let length = Duration::from_secs(*seconds);
    let is_wanted = |kind: &&&Kind| kinds.is_empty() || kinds.iter().any(|name| name == kind.name);
    let wanted: Vec<&&Kind> = kinds::ALL.iter().filter(is_wanted).collect();
    let wants_webhooks = kinds.is_empty() || kinds.iter().any(|name| name == dead_endpoints::NAME);
    let names = || kinds::ALL.map(|kind| kind.name).into_iter().chain([dead_endpoints::NAME]);
    anyhow::ensure!(
        !wanted.is_empty() || wants_webhooks,
        "no such kind; there are {}",
        names().collect::<Vec<_>>().join(", ")
    );
    if !wanted.is_empty() {
        println!("a paying team captures a tiny page in a loop for {length:.0?}, with {SLOTS} slots");
    }
    let mut are_met = true;
    for kind in wanted {
        println!("\n{}: each account {}", kind.name, kind.what);
        println!(
            "{:<17}{:>9}{:>10}{:>9}{:>9}{:>9}{:>10}{:>9}",
            "hostile accounts", "groups", "captures", "p50 ms", "p90 ms", "p99 ms", "failures", "refused"
        );
        for groups in [Groups::OfTheMachine, Groups::Hidden] {
            let mut limit = f64::INFINITY;
            let mut has_groups = true;
            for (at, hostile) in accounts.iter().enumerate() {
                let (mut outcome, uses_groups) = run(kind, groups, *hostile, length).await?;
                let median = outcome.took.quantile(0.5);
                println!(
                    "{hostile:<17}{:>9}{:>10}{median:>9.0}{:>9.0}{:>9.0}{:>10}{:>9}",
                    if uses_groups { "yes" } else { "no" },
                    outcome.done,
                    outcome.took.quantile(0.9),
                    outcome.took.quantile(0.99),
                    outcome.failed,
                    outcome.refused
                );
                has_groups = uses_groups;
                if at == 0 {
                    limit = FACTOR * median + MORE_MS;
                }
                are_met &= median <= limit && outcome.failed + outcome.refused == 0;
            }
            println!(
                "aim: a median of at most {limit:.0} ms ({FACTOR} times the first one, and {MORE_MS:.0} ms), and no failures"
            );
            if !has_groups {
                break;
            }
        }
    }
    if wants_webhooks {
        are_met &= dead_endpoints::measure(length, accounts).await?;
    }
    println!("\nthe aims are {}", if are_met { "met" } else { "missed" });
    Ok(())
}

/// One case, with a new service. Returns what the paying team saw, and whether browsers were in control groups.
async fn run(kind: &Kind, groups: Groups, hostile: usize, length: Duration) -> anyhow::Result<(Outcome, bool)> {
    // The defaults, which other benchmarks change.
    let mut settings = vec![
        ("GRABD_BROWSER__SLOTS", SLOTS),
        ("GRABD_ABUSE__STRANGERS", "always"),
        ("GRABD_ABUSE__FAILED_SECONDS_PER_MINUTE_UNPAID", "20"),
    ];
    settings.extend(kind.settings);
    let service = Service::start_in(groups, &settings).await?;
    let store = service.store().await?;
    let now = Clock::system().now();
    let victim = accounts::create_team(&store, "victim", 0, now).await?;
    accounts::grant_prepaid(&store, victim.team, 1_000_000, "ref:the victim's invoice", now).await?;
    let mut teams = Vec::with_capacity(hostile);
    for _ in 0..hostile {
        teams.push(accounts::create_team(&store, "hostile", kind.credits, now).await?);
    }
    store.close().await;

    let site = Site::start(ALLOWED).await?;
    let until = Instant::now() + HEAD_START + length;
    let field = Field { service, site, until, teams: teams.iter().map(|team| team.team).collect() };
    let page = json!({ "url": field.site.url(TINY), "width": 320, "height": 240 });
    // Starts the first browser and measures nothing.
    field.service.post(victim.live.expose(), &page).await?;
    let uses_groups = field.service.uses_control_groups();
    let attacks = join_all(teams.iter().map(|team| (kind.attack)(&field, team)));
    let capture = async {
        tokio::time::sleep(HEAD_START).await;
        let outcome = capture_all(&field, victim.live.expose(), &page).await;
        (kind.release)(&field).await?;
        outcome
    };
    let (attacked, outcome) = tokio::join!(attacks, capture);
    attacked.into_iter().collect::<anyhow::Result<()>>()?;
    field.service.stop().await?;
    Ok((outcome?, uses_groups))
}

async fn capture_all(field: &Field, key: &str, page: &serde_json::Value) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::default();
    while Instant::now() < field.until {
        let began = Instant::now();
        let (status, answer) = field.service.post(key, page).await?;
        outcome.took.add(began.elapsed());
        match (status, answer["error"]["code"].as_str()) {
            (200, _) => outcome.done += 1,
            (429, _) => {
                outcome.refused += 1;
                tokio::time::sleep(PAUSE).await;
            }
            (500, Some("render_failed")) => outcome.failed += 1,
            (other, _) => anyhow::bail!("{other}: {answer}"),
        }
    }
    Ok(outcome)
}
