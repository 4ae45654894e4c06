//! How long a paying team waits while hostile teams, which pay nothing, keep capturing pages that never answer.

use std::time::{Duration, Instant};

use futures::future::join_all;
use grabd_engine::accounts;
use grabd_engine::clock::Clock;
use grabd_tests::harness::ALLOWED;
use grabd_tests::site::Site;
use serde_json::{Value, json};

use crate::measure::Sample;
use crate::service::Service;

/// Numbers of hostile teams, each with its own account and one credit.
const CASES: [usize; 3] = [0, 16, 64];
const SLOTS: &str = "4";
/// A page that answers only when it is released, so that the service can be stopped quickly.
const HELD: &str = "/held/tiny";
const TINY: &str = "/tiny";
/// Time between two creates of a hostile team. It does not respect `Retry-After`.
const PAUSE: Duration = Duration::from_millis(250);
/// Time for the first hostile captures to reach their page.
const HEAD_START: Duration = Duration::from_secs(2);

/// What the victim saw.
#[derive(Default)]
struct Outcome {
    took: Sample,
    done: usize,
    /// Creates that failed after a wait.
    timed_out: usize,
    /// Creates that were refused at once.
    refused: usize,
}

/// Prints the victim's latencies and time-outs, with `length` for each case.
pub(crate) async fn measure(length: Duration) -> anyhow::Result<()> {
    println!("a paying team captures a tiny page in a loop for {length:.0?}, with {SLOTS} slots");
    println!(
        "{:<15}{:>10}{:>10}{:>10}{:>12}{:>10}{:>17}",
        "hostile teams", "captures", "p50 ms", "p99 ms", "time-outs", "refused", "hostile renders"
    );
    let mut aim_ms = f64::NAN;
    for hostile in CASES {
        let (mut outcome, renders) = run(hostile, length).await?;
        let p99 = outcome.took.quantile(0.99);
        println!(
            "{hostile:<15}{:>10}{:>10.0}{p99:>10.0}{:>12}{:>10}{renders:>17}",
            outcome.done,
            outcome.took.quantile(0.5),
            outcome.timed_out,
            outcome.refused
        );
        if hostile == 0 {
            aim_ms = 1.5 * p99 + 2000.0;
        }
    }
    println!("aim: p99 of at most {aim_ms:.0} ms (1.5 times that without hostile teams, and 2 s), and no time-outs");
    Ok(())
}

/// One case, with a new service. Returns what the victim saw and how often hostile pages were opened.
async fn run(hostile: usize, length: Duration) -> anyhow::Result<(Outcome, usize)> {
    let site = Site::start(ALLOWED).await?;
    // The defaults, which other benchmarks change.
    let settings = [("GRABD_BROWSER__SLOTS", SLOTS), ("GRABD_ABUSE__FAILED_SECONDS_PER_MINUTE_UNPAID", "20")];
    let service = Service::start_with(&settings).await?;
    let store = service.store().await?;
    let now = Clock::system().now();
    let victim = accounts::create_team(&store, "victim", 0, now).await?;
    accounts::grant_prepaid(&store, victim.team, 1_000_000, "ref:the victim's invoice", now).await?;
    let mut teams = Vec::with_capacity(hostile);
    for _ in 0..hostile {
        teams.push(accounts::create_team(&store, "hostile", 1, now).await?);
    }
    store.close().await;

    // Starts the browsers and measures nothing.
    let page = json!({ "url": site.url(TINY), "width": 320, "height": 240 });
    service.post(victim.live.expose(), &page).await?;

    let until = Instant::now() + HEAD_START + length;
    let held = json!({ "url": site.url(HELD), "width": 320, "height": 240 });
    let attacks = join_all(teams.iter().map(|team| attack(&service, team.live.expose(), &held, until)));
    let capture = async {
        tokio::time::sleep(HEAD_START).await;
        let outcome = capture_until(&service, victim.live.expose(), &page, until).await;
        let renders = site.hits(HELD);
        grabd_tests::client::client().build()?.post(site.url(HELD)).send().await?;
        anyhow::Ok((outcome?, renders))
    };
    let (attacked, outcome) = tokio::join!(attacks, capture);
    attacked.into_iter().collect::<anyhow::Result<()>>()?;
    service.stop().await?;
    outcome
}

async fn attack(service: &Service, key: &str, body: &Value, until: Instant) -> anyhow::Result<()> {
    while Instant::now() < until {
        service.post(key, body).await?;
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

async fn capture_until(service: &Service, key: &str, body: &Value, until: Instant) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::default();
    while Instant::now() < until {
        let began = Instant::now();
        let (status, answer) = service.post(key, body).await?;
        outcome.took.add(began.elapsed());
        match (status, answer["error"]["code"].as_str()) {
            (200, _) => outcome.done += 1,
            (429, _) => {
                outcome.refused += 1;
                tokio::time::sleep(PAUSE).await;
            }
            (500, Some("render_failed")) => outcome.timed_out += 1,
            (other, _) => anyhow::bail!("{other}: {answer}"),
        }
    }
    Ok(outcome)
}
