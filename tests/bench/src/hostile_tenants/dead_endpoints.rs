//! How long the webhooks of a paying team take while hostile accounts have endpoints that never respond. Both sides use the
//! clock of this machine.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use anyhow::Context;
use futures::future::join_all;
use grabd_domain::Timestamp;
use grabd_engine::accounts;
use grabd_engine::clock::Clock;
use grabd_tests::harness::ALLOWED;
use grabd_tests::receiver::{Receiver, SilentServer};
use grabd_tests::site::Site;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::{FACTOR, MORE_MS};
use crate::measure::Sample;
use crate::service::Service;

/// The name of this kind, on the command line.
pub(super) const NAME: &str = "dead-endpoints";
/// Endpoints of each: as many as a team may have.
const ENDPOINTS: usize = 10;
/// Time between two messages of a hostile account.
const HOSTILE_PAUSE: Duration = Duration::from_millis(250);
/// Time between two captures of the paying team.
const PAUSE: Duration = Duration::from_millis(250);
/// Time for the hostile messages to pile up.
const HEAD_START: Duration = Duration::from_secs(5);
/// Time in which the last messages must arrive.
const LAST: Duration = Duration::from_secs(60);

/// What the paying team received.
struct Outcome {
    /// From the end of a capture to the message about it.
    took: Sample,
    captured: usize,
    lost: usize,
    /// Messages of hostile accounts that were waiting at the end.
    hostile: usize,
}

/// Prints how long messages take, with `length` for each number of hostile accounts. Returns whether the aim is met.
pub(super) async fn measure(length: Duration, accounts: &[usize]) -> anyhow::Result<bool> {
    println!(
        "\n{NAME}: webhooks of a paying team for {length:.0?}, while each account has {ENDPOINTS} endpoints that never respond"
    );
    println!(
        "{:<17}{:>10}{:>10}{:>10}{:>8}{:>19}",
        "hostile accounts", "captures", "p50 ms", "p99 ms", "lost", "hostile messages"
    );
    let (mut aim_ms, mut is_met) = (f64::INFINITY, true);
    for (at, hostile_accounts) in accounts.iter().copied().enumerate() {
        let Outcome { mut took, captured, lost, hostile } = run(hostile_accounts, length).await?;
        let p50 = took.quantile(0.5);
        println!("{hostile_accounts:<17}{captured:>10}{p50:>10.0}{:>10.0}{lost:>8}{hostile:>19}", took.quantile(0.99));
        if at == 0 {
            aim_ms = FACTOR * p50 + MORE_MS;
        }
        is_met &= p50 <= aim_ms && lost == 0;
    }
    println!("aim: p50 of at most {aim_ms:.0} ms (1.5 times that without hostile accounts, and 0.5 s), and none lost");
    Ok(is_met)
}

/// One case, with a new service.
async fn run(hostile_accounts: usize, length: Duration) -> anyhow::Result<Outcome> {
    let (site, receiver) = (Site::start(ALLOWED).await?, Receiver::start(ALLOWED).await?);
    let silent = SilentServer::start(ALLOWED).await?;
    let settings = [("GRABD_WEBHOOKS__ALLOW_HTTP", "true"), ("GRABD_ABUSE__STRANGERS", "always")];
    let service = Service::start_with(&settings).await?;
    let store = service.store().await?;
    let now = Clock::system().now();
    let victim = accounts::create_team(&store, "victim", 0, now).await?;
    accounts::grant_prepaid(&store, victim.team, 1_000_000, "ref:the victim's invoice", now).await?;
    let mut attackers = Vec::with_capacity(hostile_accounts);
    for _ in 0..hostile_accounts {
        attackers.push(accounts::create_team(&store, "hostile", 0, now).await?);
    }
    store.close().await;
    service.register_webhook(victim.live.expose(), &receiver.url()).await?;
    // Starts the browser, and measures nothing.
    let page = site.url("/tiny");
    service.queue(victim.live.expose(), &page).await?;
    receiver.wait_for(0).await?;

    let until = Instant::now() + HEAD_START + length;
    let attacks = join_all(attackers.iter().map(|team| attack(&service, team.live.expose(), &silent, until)));
    let capture = async {
        tokio::time::sleep(HEAD_START).await;
        let mut captured = HashSet::new();
        while Instant::now() < until {
            captured.insert(service.queue(victim.live.expose(), &page).await?);
            tokio::time::sleep(PAUSE).await;
        }
        collect(&receiver, &captured).await
    };
    let (sent, outcome) = tokio::join!(attacks, capture);
    let hostile = sent.into_iter().sum::<anyhow::Result<usize>>()?;
    service.stop().await?;
    Ok(Outcome { hostile, ..outcome? })
}

/// Sends test messages to endpoints that never respond. Returns their number.
async fn attack(service: &Service, key: &str, silent: &SilentServer, until: Instant) -> anyhow::Result<usize> {
    let mut webhooks = Vec::with_capacity(ENDPOINTS);
    for _ in 0..ENDPOINTS {
        webhooks.push(service.register_webhook(key, &silent.url()).await?);
    }
    let mut sent = 0;
    while Instant::now() < until {
        for webhook in &webhooks {
            service.test_webhook(key, webhook).await?;
            sent += 1;
        }
        tokio::time::sleep(HOSTILE_PAUSE).await;
    }
    Ok(sent)
}

/// Waits for the messages about these captures.
async fn collect(receiver: &Receiver, captured: &HashSet<String>) -> anyhow::Result<Outcome> {
    let deadline = Instant::now() + LAST;
    let is_missing = |received: usize| received <= captured.len() && Instant::now() < deadline;
    while is_missing(receiver.received().len()) {
        tokio::time::sleep(PAUSE).await;
    }
    let (mut took, mut seen) = (Sample::default(), HashSet::new());
    for message in receiver.received() {
        let json = message.json()?;
        let id = json["data"]["id"].as_str().context("the id of a grab")?.to_owned();
        if captured.contains(&id) && seen.insert(id) {
            let ended = OffsetDateTime::parse(json["timestamp"].as_str().context("a time")?, &Rfc3339)?;
            let ended_ms = i64::try_from(ended.unix_timestamp_nanos() / 1_000_000)?;
            took.add(message.at.since(Timestamp::from_ms(ended_ms)));
        }
    }
    Ok(Outcome { took, captured: captured.len(), lost: captured.len() - seen.len(), hostile: 0 })
}
