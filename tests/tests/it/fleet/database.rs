//! The database of a cluster fails while it captures pages: its standby is promoted, it restarts, or it is cut off.
//!
//! `GRABD_TEST_OUTAGE_SECONDS` makes the last outage longer, for `script/fleet-test`.

use std::time::Duration;

use anyhow::{Result, ensure};
use grabd_tests::forward::Link;
use grabd_tests::postgres_server::PostgresServer;
use tokio::time::sleep;

use super::load::{FAILS_WITHIN, Load, Outcome};
use super::processes::TestCluster;
use super::small_fleet::SmallFleet;

/// More than are spent.
const CREDITS: u32 = 100_000;
/// Callers of each kind.
const CALLERS: usize = 2;
/// Answers before and after each fault.
const ANSWERS: usize = 6;
/// How long the database is cut off, unless `GRABD_TEST_OUTAGE_SECONDS` says otherwise.
const OUTAGE: Duration = Duration::from_secs(3);

/// Checks that creates failed soon and said why.
fn check_failed_calls(outcome: &Outcome) -> Result<()> {
    for call in outcome.failed_calls.iter().filter(|call| !call.has_grab) {
        ensure!(call.took < FAILS_WITHIN, "a create took too long to fail: {call:?}");
        ensure!(call.is_outage(), "a create failed for another reason: {call:?}");
    }
    println!("{outcome}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promoted_standby_takes_over_without_a_restart() -> Result<()> {
    let mut primary = PostgresServer::start().await?;
    let standby = primary.start_standby().await?;
    let url = PostgresServer::url_of(&[primary.address(), standby.address()]);
    let cluster = TestCluster::start_on(&url, &url, CREDITS).await?;
    let fleet = SmallFleet::start(&cluster, &[]).await?;
    let edges = fleet.addresses();
    let load = Load::new(&cluster, &edges).await?;
    let failover = async {
        load.answers(ANSWERS).await?;
        primary.kill().await?;
        load.outage().await?;
        standby.promote().await?;
        load.answers(ANSWERS).await
    };
    load.during(CALLERS, failover).await?;
    check_failed_calls(&load.finish().await?)?;
    fleet.stop(&cluster).await?;
    cluster.finish().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restart_and_interruption_of_the_database_lose_no_grab_and_no_credit() -> Result<()> {
    let seconds = std::env::var_os("GRABD_TEST_OUTAGE_SECONDS").and_then(|text| text.to_str()?.parse().ok());
    let mut server = PostgresServer::start().await?;
    let link = Link::to(server.address()).await?;
    let cluster = TestCluster::start_on(&server.url(), &PostgresServer::url_of(&[link.address()]), CREDITS).await?;
    let fleet = SmallFleet::start(&cluster, &[]).await?;
    let edges = fleet.addresses();
    let load = Load::new(&cluster, &edges).await?;
    let faults = async {
        load.answers(ANSWERS).await?;
        server.stop_immediately().await?;
        load.outage().await?;
        server.start_again().await?;
        load.answers(ANSWERS).await?;
        link.interrupt();
        load.outage().await?;
        // The outage goes on.
        sleep(seconds.map_or(OUTAGE, Duration::from_secs)).await;
        link.restore();
        load.answers(ANSWERS).await
    };
    load.during(CALLERS, faults).await?;
    check_failed_calls(&load.finish().await?)?;
    fleet.stop(&cluster).await?;
    cluster.finish().await;
    Ok(())
}
