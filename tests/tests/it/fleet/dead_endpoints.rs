//! Webhooks while other teams have endpoints that never respond, with several cores.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use grabd_engine::accounts;
use grabd_engine::clock::Clock;
use grabd_tests::harness::ALLOWED;
use grabd_tests::receiver::{Receiver, SilentServer};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::RED;
use super::processes::{Process, TestCluster};
use super::renderer::ScriptedRenderer;

/// Teams with dead endpoints, their endpoints, and the messages to each of these.
const TEAMS: usize = 6;
const ENDPOINTS: usize = 10;
const MESSAGES: usize = 10;
/// An endpoint that does not respond takes 15 s, and a core that polls the database a second.
const LIMIT: Duration = Duration::from_secs(6);

async fn post(cluster: &TestCluster, edge: &Process, key: &str, path: &str, body: Option<Value>) -> Result<Value> {
    let request = cluster.client.post(format!("http://{}/v1{path}", edge.http)).bearer_auth(key);
    let request = match body {
        Some(body) => request.json(&body),
        None => request,
    };
    Ok(request.send().await?.error_for_status()?.json().await?)
}

async fn register(cluster: &TestCluster, edge: &Process, key: &str, url: &str) -> Result<String> {
    let webhook = post(cluster, edge, key, "/webhooks", Some(json!({ "url": url }))).await?;
    Ok(format!("/webhooks/{}/test", webhook["id"].as_str().context("an id")?))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_endpoints_of_other_teams_do_not_delay_webhooks_with_two_cores() -> Result<()> {
    let cluster = TestCluster::start().await?;
    let settings = [("GRABD_WEBHOOKS__ALLOW_HTTP", "true")];
    let cores = tokio::try_join!(cluster.core_with("first", &settings), cluster.core_with("second", &settings))?;
    let edge = cluster.edge_with(&settings).await?;
    // Without one, nothing is ready.
    let renderer = ScriptedRenderer::attach(&[cores.0.renderers(), cores.1.renderers()], 1, RED, false);
    for process in [&cores.0, &cores.1, &edge] {
        process.wait_until_ready(&cluster.client).await?;
    }
    let (silent, receiver) = (SilentServer::start(ALLOWED).await?, Receiver::start(ALLOWED).await?);
    for _ in 0..TEAMS {
        let hostile = accounts::create_team(&cluster.store, "hostile", 0, Clock::system().now()).await?;
        for _ in 0..ENDPOINTS {
            let path = register(&cluster, &edge, hostile.live.expose(), &silent.url()).await?;
            for _ in 0..MESSAGES {
                post(&cluster, &edge, hostile.live.expose(), &path, None).await?;
            }
        }
    }
    let key = cluster.team.live.expose();
    let path = register(&cluster, &edge, key, &receiver.url()).await?;
    for number in 0..4 {
        post(&cluster, &edge, key, &path, None).await?;
        timeout(LIMIT, receiver.wait_for(number)).await.with_context(|| format!("message {number} is delayed"))??;
    }
    // Each was sent by one of the cores.
    ensure!(receiver.received().len() == 4, "{} messages", receiver.received().len());
    drop(renderer);
    for process in [edge, cores.0, cores.1] {
        process.stop().await?;
    }
    cluster.finish().await;
    Ok(())
}
