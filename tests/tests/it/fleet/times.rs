//! How long callers wait when a part of the cluster goes away: the longest call that was in progress then, or began after.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use grabd_tests::forward::Link;
use grabd_tests::postgres_server::PostgresServer;
use grabd_tests::s3_server::{Outage, S3Server};
use reqwest::{Method, StatusCode};
use rustix::process::Signal;
use tokio::time::sleep;

use super::load::Load;
use super::nats::NatsServer;
use super::processes::{TestCluster, variable};
use super::small_fleet::SmallFleet;

/// More than are spent.
const CREDITS: u32 = 100_000;
/// Callers of each kind.
const CALLERS: usize = 3;
/// Answers before the fault.
const ANSWERS: usize = 12;
/// Measurements of each fault.
const REPETITIONS: usize = 5;
/// How long calls are observed after a fault.
const OBSERVED: Duration = Duration::from_secs(12);
/// How long the object store fails.
const STORE_OUTAGE: Duration = Duration::from_secs(2);

/// What goes away.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    Nothing,
    CoreKilled,
    CorePaused,
    RendererKilled,
    RendererCutOff,
    EdgeKilled,
    DatabaseRestarted,
    StandbyPromoted,
    NatsKilled,
    StoreFails,
}

impl Fault {
    const ALL: [Self; 10] = [
        Self::Nothing,
        Self::CoreKilled,
        Self::CorePaused,
        Self::RendererKilled,
        Self::RendererCutOff,
        Self::EdgeKilled,
        Self::DatabaseRestarted,
        Self::StandbyPromoted,
        Self::NatsKilled,
        Self::StoreFails,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::CoreKilled => "core killed",
            Self::CorePaused => "core's machine lost",
            Self::RendererKilled => "renderer killed",
            Self::RendererCutOff => "renderer's machine lost",
            Self::EdgeKilled => "edge killed",
            Self::DatabaseRestarted => "PostgreSQL restarted",
            Self::StandbyPromoted => "PostgreSQL: standby promoted",
            Self::NatsKilled => "NATS killed",
            Self::StoreFails => "object store fails for 2 s",
        }
    }
}

/// Measures one fault once. Returns the longest calls: synchronous, asynchronous, and watching.
async fn measure(fault: Fault) -> Result<[Duration; 3]> {
    let mut primary = PostgresServer::start().await?;
    let standby = match fault == Fault::StandbyPromoted {
        true => Some(primary.start_standby().await?),
        false => None,
    };
    let servers: Vec<_> =
        [Some(&primary), standby.as_ref()].into_iter().flatten().map(PostgresServer::address).collect();
    let url = PostgresServer::url_of(&servers);
    let cluster = TestCluster::start_on(&url, &url, CREDITS).await?;
    let bucket = S3Server::start().await?;
    let mut nats = NatsServer::start().await?;
    let nats_url = nats.url();
    let settings: Vec<_> = bucket.settings().into_iter().map(|(name, value)| (variable(name), value)).collect();
    let mut settings: Vec<_> = settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    settings.push(("GRABD_BUS__URL", &nats_url));
    let mut links = Vec::new();
    let mut fleet = SmallFleet::start_with(&cluster, &settings, async |cores| {
        for core in cores {
            links.push(Link::to(core).await?);
        }
        Ok(cores)
    })
    .await?;
    let reached: Vec<_> = links.iter().map(Link::address).collect();
    // A second renderer, on a machine of its own.
    let _second = fleet.attach_renderer(&reached).await?;
    // A queue that grows while slots are missing would be measured instead.
    let load = Load::new_slow(&cluster, &fleet.addresses()).await?;
    let observe = async {
        load.answers(ANSWERS).await?;
        let at = Instant::now();
        match fault {
            Fault::Nothing => {}
            Fault::CoreKilled => fleet.kill_core().await?,
            Fault::CorePaused => fleet.cores[0].signal(Signal::STOP)?,
            // All its connections are closed, and it can make no other.
            Fault::RendererKilled => links.clear(),
            Fault::RendererCutOff => links.iter().for_each(Link::interrupt),
            Fault::EdgeKilled => fleet.kill_edge().await?,
            Fault::DatabaseRestarted => {
                primary.stop_immediately().await?;
                primary.start_again().await?;
            }
            Fault::StandbyPromoted => {
                primary.kill().await?;
                standby.as_ref().context("a standby")?.promote().await?;
            }
            Fault::NatsKilled => nats.kill().await?,
            Fault::StoreFails => {
                bucket.begin_outage(Method::PUT, Outage::Status(StatusCode::SERVICE_UNAVAILABLE, "SlowDown"));
                sleep(STORE_OUTAGE).await;
                bucket.end_outage();
            }
        }
        sleep(OBSERVED.saturating_sub(at.elapsed())).await;
        Ok(at)
    };
    let at = load.during(CALLERS, observe).await?;
    let longest = load.longest_since(at);
    // What must hold was checked by other tests. The processes are killed.
    Ok(longest)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes twenty minutes: run by script/fleet-test --times"]
async fn fail_over_times() -> Result<()> {
    println!("the longest call in ms, median of {REPETITIONS} (and the longest)");
    println!("{:<30}{:>18}{:>18}{:>18}", "what goes away", "synchronous", "asynchronous", "watching");
    for fault in Fault::ALL {
        let mut all = Vec::new();
        for _ in 0..REPETITIONS {
            all.push(measure(fault).await.with_context(|| fault.name())?);
        }
        let columns = [0, 1, 2].map(|kind| {
            let mut times: Vec<u128> = all.iter().map(|times: &[Duration; 3]| times[kind].as_millis()).collect();
            times.sort_unstable();
            format!("{} ({})", times[times.len() / 2], times[times.len() - 1])
        });
        println!("{:<30}{:>18}{:>18}{:>18}", fault.name(), columns[0], columns[1], columns[2]);
    }
    Ok(())
}
