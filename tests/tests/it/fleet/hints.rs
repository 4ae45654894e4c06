//! Hints between processes. Their polls are switched off, so that only hints can tell of a change, except where hints
//! are lost.

use anyhow::{Context, Result, ensure};
use grabd_tests::harness::ALLOWED;
use serde_json::{Value, json};

use super::RED;
use super::nats::NatsServer;
use super::processes::{Process, TestCluster};
use super::renderer::ScriptedRenderer;

const POLLS_OFF: (&str, &str) = ("GRABD_TEST_FAILPOINTS", "polls=off");

/// What passes hints on.
enum Bus {
    Database,
    Nats(Box<NatsServer>),
}

impl Bus {
    /// Sends a payload that is not one of hints.
    async fn send_nonsense(&self, cluster: &TestCluster) -> Result<()> {
        match self {
            Self::Database => cluster.execute("NOTIFY grabd_hints, '1 somebody w nonsense'").await,
            Self::Nats(server) => server.publish("grabd.v1.hints", "1 somebody w nonsense").await,
        }
    }

    /// Interrupts the bus, does something, and ends the interruption.
    async fn interrupt<T>(&mut self, cluster: &TestCluster, meanwhile: impl Future<Output = Result<T>>) -> Result<T> {
        match self {
            Self::Database => {
                let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                           WHERE datname = current_database() AND application_name = 'grabd hints'";
                cluster.execute(end).await?;
                meanwhile.await
            }
            Self::Nats(server) => {
                server.kill().await?;
                let done = meanwhile.await?;
                server.start_again().await?;
                Ok(done)
            }
        }
    }
}

/// A synchronous caller gets its image, and a watcher sees the end of a queued grab.
async fn capture_and_watch(cluster: &TestCluster, edge: &Process, url: &str) -> Result<()> {
    let send = |is_async: bool| {
        let request = cluster.client.post(format!("http://{}/v1/grabs?async={is_async}", edge.http));
        request.bearer_auth(cluster.team.live.expose()).json(&json!({ "url": url })).send()
    };
    let response = send(false).await?;
    ensure!(response.status() == 200, "{:?}", response.text().await?);
    let queued: Value = send(true).await?.error_for_status()?.json().await?;
    let id = queued["id"].as_str().context("an id")?;
    // The stream ends with the grab.
    let events = cluster.client.get(format!("http://{}/v1/grabs/{id}/events", edge.http));
    let events = events.bearer_auth(cluster.team.live.expose()).send().await?.error_for_status()?.text().await?;
    ensure!(events.contains("\"done\""), "{events}");
    Ok(())
}

async fn hints_are_exchanged(mut bus: Bus) -> Result<()> {
    let cluster = TestCluster::start().await?;
    let url = match &bus {
        Bus::Database => String::new(),
        Bus::Nats(server) => server.url(),
    };
    let settings = [POLLS_OFF, ("GRABD_BUS__URL", url.as_str())];
    let (core, edge) = tokio::try_join!(cluster.core_with("core", &settings), cluster.edge_with(&settings))?;
    let renderer = ScriptedRenderer::attach(&[core.renderers()], 2, RED, false);
    edge.wait_until_ready(&cluster.client).await?;
    let page = format!("http://{ALLOWED}/page");
    capture_and_watch(&cluster, &edge, &page).await?;

    bus.send_nonsense(&cluster).await?;
    capture_and_watch(&cluster, &edge, &page).await?;

    // A grab that is queued meanwhile is not forgotten, and hints are sent again.
    let queued = bus.interrupt(&cluster, cluster.queue(&edge)).await?;
    cluster.wait_for_end(queued).await?;
    capture_and_watch(&cluster, &edge, &page).await?;
    drop(renderer);
    edge.stop().await?;
    core.stop().await?;
    cluster.finish().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hints_by_the_database_are_all_that_a_cluster_needs() -> Result<()> {
    hints_are_exchanged(Bus::Database).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hints_by_nats_are_all_that_a_cluster_needs() -> Result<()> {
    hints_are_exchanged(Bus::Nats(Box::new(NatsServer::start().await?))).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cluster_works_when_all_hints_are_lost() -> Result<()> {
    let cluster = TestCluster::start().await?;
    // Nobody listens there.
    let mut server = NatsServer::start().await?;
    server.kill().await?;
    let url = server.url();
    let settings = [("GRABD_BUS__URL", url.as_str())];
    let (core, mut edge) = tokio::try_join!(cluster.core_with("core", &settings), cluster.edge_with(&settings))?;
    edge.wait_for_log("hints between processes are lost").await?;
    let renderer = ScriptedRenderer::attach(&[core.renderers()], 2, RED, false);
    edge.wait_until_ready(&cluster.client).await?;
    capture_and_watch(&cluster, &edge, &format!("http://{ALLOWED}/page")).await?;
    drop(renderer);
    edge.stop().await?;
    core.stop().await?;
    cluster.finish().await;
    Ok(())
}
