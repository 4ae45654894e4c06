//! Other parts of a cluster fail while it captures pages: the object store, the network between a renderer and a core, a
//! core that is paused, and a NATS server that treats a process as too slow.
//!
//! `GRABD_TEST_PAUSE_SECONDS` makes the pauses longer, for `script/fleet-test`.

use std::time::Duration;

use anyhow::{Result, ensure};
use grabd_domain::grabs::Status;
use grabd_store::nodes::DEAD_AFTER;
use grabd_tests::forward::Link;
use grabd_tests::s3_server::{Outage, S3Server};
use reqwest::{Method, StatusCode};
use rustix::process::Signal;
use tokio::time::sleep;

use super::load::Load;
use super::nats::NatsServer;
use super::processes::{TestCluster, poll, variable};
use super::small_fleet::SmallFleet;

/// More than are spent.
const CREDITS: u32 = 100_000;
/// Callers of each kind.
const CALLERS: usize = 2;
/// Answers before and after each fault.
const ANSWERS: usize = 6;
/// How long the object store makes requests wait, unless `GRABD_TEST_PAUSE_SECONDS` says otherwise.
const STORE_PAUSE: Duration = Duration::from_secs(2);
/// Requests that fail before the object store works again: two for each slot.
const FAILURES: usize = 8;

/// The longer of a pause and the one that the environment asks for.
fn pause(at_least: Duration) -> Duration {
    let seconds = std::env::var_os("GRABD_TEST_PAUSE_SECONDS").and_then(|text| text.to_str()?.parse().ok());
    at_least.max(seconds.map_or(Duration::ZERO, Duration::from_secs))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failures_of_the_object_store_are_repeated_or_uncharged() -> Result<()> {
    let bucket = S3Server::start().await?;
    let settings: Vec<_> = bucket.settings().into_iter().map(|(name, value)| (variable(name), value)).collect();
    let settings: Vec<_> = settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let cluster = TestCluster::start_with(CREDITS).await?;
    let fleet = SmallFleet::start(&cluster, &settings).await?;
    let load = Load::new(&cluster, &fleet.addresses()).await?;
    let faults = async {
        load.answers(ANSWERS).await?;
        for (status, code) in
            [(StatusCode::SERVICE_UNAVAILABLE, "SlowDown"), (StatusCode::INSUFFICIENT_STORAGE, "StorageFull")]
        {
            let before = bucket.outage_count();
            bucket.begin_outage(Method::PUT, Outage::Status(status, code));
            poll("failed requests", async || Ok((bucket.outage_count() >= before + FAILURES).then_some(()))).await?;
            bucket.end_outage();
            load.answers(ANSWERS).await?;
        }
        // What is denied once is not repeated within the attempt.
        bucket.begin_outage(Method::PUT, Outage::Status(StatusCode::FORBIDDEN, "AccessDenied"));
        poll("a grab that is given up", async || {
            let grabs = cluster.grabs().await?;
            Ok(grabs.iter().any(|grab| grab.status() == Status::Failed).then_some(()))
        })
        .await?;
        bucket.end_outage();
        load.answers(ANSWERS).await?;
        let before = bucket.outage_count();
        bucket.begin_outage(Method::PUT, Outage::Pause);
        poll("a request that waits", async || Ok((bucket.outage_count() > before).then_some(()))).await?;
        sleep(pause(STORE_PAUSE)).await;
        bucket.end_outage();
        load.answers(ANSWERS).await
    };
    load.during(CALLERS, faults).await?;
    let outcome = load.finish().await?;
    println!("{outcome}");
    ensure!(outcome.failed > 0, "no grab was given up while uploads were denied");
    fleet.stop(&cluster).await?;
    cluster.finish().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn renderer_that_cannot_reach_one_core_works_for_the_other() -> Result<()> {
    let cluster = TestCluster::start_with(CREDITS).await?;
    let mut link = None;
    let fleet = SmallFleet::start_with(&cluster, &[], async |[first, second]| {
        let to_first = link.insert(Link::to(first).await?);
        Ok([to_first.address(), second])
    })
    .await?;
    let link = link.expect("it was made");
    let load = Load::new(&cluster, &fleet.addresses()).await?;
    let partition = async {
        load.answers(ANSWERS).await?;
        link.interrupt();
        // Those that the first core had assigned are assigned again by the other one.
        load.answers(4 * ANSWERS).await?;
        poll("the end of the session", async || {
            let nodes = cluster.store.nodes().list_nodes().await?;
            Ok(nodes.iter().any(|node| node.role == "core" && node.slots == 0).then_some(()))
        })
        .await?;
        load.answers(ANSWERS).await?;
        link.restore();
        load.answers(ANSWERS).await
    };
    load.during(CALLERS, partition).await?;
    let outcome = load.finish().await?;
    println!("{outcome}");
    fleet.stop(&cluster).await?;
    cluster.finish().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes half a minute: run by script/fleet-test"]
async fn paused_core_loses_no_grab_and_no_credit() -> Result<()> {
    let cluster = TestCluster::start_with(CREDITS).await?;
    let fleet = SmallFleet::start(&cluster, &[]).await?;
    let load = Load::new(&cluster, &fleet.addresses()).await?;
    let paused = &fleet.cores[0];
    let pausing = async {
        load.answers(ANSWERS).await?;
        paused.signal(Signal::STOP)?;
        let is_dead =
            async || Ok(cluster.store.nodes().list_nodes().await?.iter().any(|node| !node.is_alive).then_some(()));
        poll("the death of the core", is_dead).await?;
        sleep(pause(DEAD_AFTER).saturating_sub(DEAD_AFTER)).await;
        load.answers(ANSWERS).await?;
        paused.signal(Signal::CONT)?;
        load.answers(ANSWERS).await
    };
    load.during(CALLERS, pausing).await?;
    let outcome = load.finish().await?;
    println!("{outcome}");
    fleet.stop(&cluster).await?;
    cluster.finish().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interruption_of_nats_fails_no_call() -> Result<()> {
    let mut server = NatsServer::start_with_slow_consumers().await?;
    let cluster = TestCluster::start_with(CREDITS).await?;
    let url = server.url();
    let fleet = SmallFleet::start(&cluster, &[("GRABD_BUS__URL", url.as_str())]).await?;
    let load = Load::new(&cluster, &fleet.addresses()).await?;
    let slow = &fleet.edges[0];
    let faults = async {
        load.answers(ANSWERS).await?;
        let before = server.subscriptions().await?;
        server.kill().await?;
        load.answers(2 * ANSWERS).await?;
        server.start_again().await?;
        load.answers(ANSWERS).await?;
        poll("the return of all processes", async || Ok((server.subscriptions().await? >= before).then_some(())))
            .await?;
        // A process that does not read is disconnected, and connects again.
        slow.signal(Signal::STOP)?;
        server.flood("grabd.v1.hints").await?;
        server.wait_for_log("Slow Consumer").await?;
        slow.signal(Signal::CONT)?;
        load.answers(2 * ANSWERS).await
    };
    load.during(CALLERS, faults).await?;
    let outcome = load.finish().await?;
    ensure!(outcome.failed == 0 && outcome.failed_calls.is_empty(), "{outcome:?}");
    fleet.stop(&cluster).await?;
    cluster.finish().await;
    Ok(())
}
