//! Several processes on one database.

mod certificates;
mod chaos;
mod database;
mod dead_endpoints;
mod deadline;
mod direct_uploads;
mod draining;
mod edges;
mod faults;
mod hints;
mod load;
mod nats;
mod processes;
mod renderer;
mod rolling;
mod slots;
mod small_fleet;
mod times;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use grabd_domain::grabs::State;
use grabd_domain::ids::GrabId;
use grabd_domain::limits::RENDER_BUDGET;
use rustix::process::Signal;
use serde_json::Value;
use tonic::transport::Endpoint;

use processes::{CREDITS, Process, TestCluster, output_of, poll};
use renderer::{HeldSession, ScriptedRenderer, picture, report};

const RED: [u8; 3] = [255, 0, 0];
const BLUE: [u8; 3] = [0, 0, 255];

/// The core that holds the lease of a grab, and the other one.
async fn holder_and_other(cluster: &TestCluster, grab: GrabId, cores: [Process; 2]) -> Result<(Process, Process)> {
    let holder = cluster.holder(grab).await?.context("the lease is still held")?;
    let [first, second] = cores;
    Ok(if holder.ends_with(&first.http.to_string()) { (first, second) } else { (second, first) })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cores_share_a_queue_and_each_grab_is_rendered_and_billed_once() -> Result<()> {
    let cluster = TestCluster::start().await?;
    let (first, second) = tokio::try_join!(cluster.core("first"), cluster.core("second"))?;
    let edge = cluster.edge().await?;
    let mut renderer = ScriptedRenderer::attach(&[first.renderers(), second.renderers()], 4, RED, false);
    for process in [&first, &second, &edge] {
        process.wait_until_ready(&cluster.client).await?;
    }
    let mut queued = Vec::new();
    for _ in 0..12 {
        queued.push(cluster.queue(&edge).await?);
    }
    // A synchronous caller at the edge waits for a core.
    let (status, grab) = cluster.create(&edge, false).await?;
    ensure!(status == 200, "{status} {grab}");
    let url = grab["image_url"].as_str().context("an image")?;
    assert_eq!(cluster.image(&edge, url).await?, picture(RED));
    for grab in &queued {
        let ended = cluster.wait_for_end(*grab).await?;
        assert!(matches!(ended.state, State::Done { .. }) && ended.attempts == 1, "{ended:?}");
    }
    let mut rendered = Vec::new();
    while let Ok(grab) = renderer.begun.try_recv() {
        rendered.push(grab);
    }
    queued.push(grab["id"].as_str().context("an id")?.parse()?);
    rendered.sort_unstable();
    queued.sort_unstable();
    assert_eq!(rendered, queued, "each is rendered once");
    assert_eq!(cluster.credits_left().await?, CREDITS - 13);

    let nodes = output_of(cluster.command("admin", &[])?.args(["admin", "--json", "nodes"])).await?;
    let nodes: Value = serde_json::from_str(&nodes)?;
    let mut roles: Vec<_> = nodes["data"].as_array().context("rows")?.iter().map(|node| &node["role"]).collect();
    roles.sort_by_key(ToString::to_string);
    assert_eq!(roles, ["core", "core", "edge"]);
    assert!(nodes["data"][0]["state"] == "live", "{nodes}");

    // A core that stops leaves at once, and the other one continues.
    first.stop().await?;
    assert_eq!(cluster.store.nodes().list_nodes().await?.len(), 2);
    let (status, grab) = cluster.create(&edge, false).await?;
    ensure!(status == 200, "{status} {grab}");
    // A core has no pages and no API for customers.
    let (address, client) = (second.http, &cluster.client);
    assert_eq!(client.get(format!("http://{address}/v1/usage")).send().await?.status(), 404);
    assert_eq!(client.get(format!("http://{address}/healthz")).send().await?.status(), 200);
    edge.stop().await?;
    second.stop().await?;
    cluster.finish().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_of_a_killed_core_are_taken_over_when_it_counts_as_dead() -> Result<()> {
    let cluster = TestCluster::start().await?;
    let (killed, other) = tokio::try_join!(cluster.core("killed"), cluster.core("other"))?;
    let edge = cluster.edge().await?;
    let endpoint = Endpoint::from_shared(format!("http://{}", killed.renderers()))?;
    // A renderer whose machine is lost with that of the core reports nothing.
    let mut held = HeldSession::attach(endpoint.connect().await?).await?;
    let grab = cluster.queue(&edge).await?;
    assert_eq!(held.assignment().await?.grab_id, grab.to_string());
    // Another process takes over nothing from a living one.
    let third = cluster.core("third").await?;
    let holder = cluster.holder(grab).await?.context("the lease is still held")?;
    assert!(holder.ends_with(&killed.http.to_string()), "{holder}");
    killed.signal(Signal::KILL)?;
    let killed_at = Instant::now();
    let mut renderer = ScriptedRenderer::attach(&[other.renderers()], 1, RED, false);
    assert_eq!(renderer.next().await?, grab);
    // Since the process is dead, and not since its lease has expired.
    ensure!(killed_at.elapsed() < RENDER_BUDGET, "{:?}", killed_at.elapsed());
    let ended = cluster.wait_for_end(grab).await?;
    assert!(matches!(ended.state, State::Done { .. }) && ended.attempts == 2, "{ended:?}");
    assert_eq!(cluster.credits_left().await?, CREDITS - 1);
    let dead: Vec<_> = cluster.store.nodes().list_nodes().await?.into_iter().filter(|node| !node.is_alive).collect();
    assert!(dead.len() == 1 && dead[0].address == holder, "{dead:?}");
    drop((held, renderer));
    for process in [edge, other, third] {
        process.stop().await?;
    }
    cluster.finish().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn renderer_reports_the_end_of_a_core_to_another_one() -> Result<()> {
    let cluster = TestCluster::start().await?;
    let (first, second) = tokio::try_join!(cluster.core("first"), cluster.core("second"))?;
    let edge = cluster.edge().await?;
    let mut renderer = ScriptedRenderer::attach(&[first.renderers(), second.renderers()], 2, RED, true);
    renderer.wait_until_attached(2).await?;
    let grab = cluster.queue(&edge).await?;
    assert_eq!(renderer.next().await?, grab);
    let (killed, other) = holder_and_other(&cluster, grab, [first, second]).await?;
    killed.signal(Signal::KILL)?;
    // The process counts as living for another hour, so only the report can release its lease.
    let hour = Duration::from_secs(3600).as_millis();
    let address = killed.http;
    let sql = format!("UPDATE node SET heartbeat_at = heartbeat_at + {hour} WHERE address LIKE '%{address}'");
    cluster.execute(&sql).await?;
    let killed_at = Instant::now();
    assert_eq!(renderer.next().await?, grab, "by the same renderer, for the other core");
    ensure!(killed_at.elapsed() < RENDER_BUDGET, "its lease has expired: {:?}", killed_at.elapsed());
    let ended = cluster.wait_for_end(grab).await?;
    assert!(matches!(ended.state, State::Done { .. }) && ended.attempts == 2, "{ended:?}");
    assert_eq!(cluster.credits_left().await?, CREDITS - 1);
    assert!(cluster.store.nodes().list_nodes().await?.iter().all(|node| node.is_alive), "it was not taken for dead");
    drop(renderer);
    for process in [edge, other] {
        process.stop().await?;
    }
    cluster.finish().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slot_does_not_wait_for_the_answer_of_a_paused_core() -> Result<()> {
    let cluster = TestCluster::start().await?;
    let (first, second) = tokio::try_join!(cluster.core("first"), cluster.core("second"))?;
    let edge = cluster.edge().await?;
    let cores = [first.renderers(), second.renderers()];
    // Its only slot.
    let mut renderer = ScriptedRenderer::attach_taking(&cores, 1, Duration::from_secs(1));
    renderer.wait_until_attached(2).await?;
    let grab = cluster.queue(&edge).await?;
    assert_eq!(renderer.next().await?, grab);
    let (paused, other) = holder_and_other(&cluster, grab, [first, second]).await?;
    // During the render, so that the core never answers the report.
    paused.signal(Signal::STOP)?;
    let paused_at = Instant::now();
    assert_eq!(renderer.next().await?, grab, "in the same slot, for the other core");
    ensure!(paused_at.elapsed() < RENDER_BUDGET, "its lease has expired: {:?}", paused_at.elapsed());
    let ended = cluster.wait_for_end(grab).await?;
    assert!(matches!(ended.state, State::Done { .. }) && ended.attempts == 2, "{ended:?}");
    assert_eq!(cluster.credits_left().await?, CREDITS - 1);
    paused.signal(Signal::CONT)?;
    drop(renderer);
    for process in [edge, other, paused] {
        process.stop().await?;
    }
    cluster.finish().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn paused_core_cannot_finish_a_lease_that_was_taken_over() -> Result<()> {
    let cluster = TestCluster::start().await?;
    let (mut paused, other) = tokio::try_join!(cluster.core("paused"), cluster.core("other"))?;
    let edge = cluster.edge().await?;
    let endpoint = Endpoint::from_shared(format!("http://{}", paused.renderers()))?;
    let mut held = HeldSession::attach(endpoint.connect().await?).await?;
    let grab = cluster.queue(&edge).await?;
    let assignment = held.assignment().await?;
    assert_eq!(assignment.grab_id, grab.to_string());
    paused.signal(Signal::STOP)?;
    let mut renderer = ScriptedRenderer::attach(&[other.renderers()], 1, BLUE, false);
    assert_eq!(renderer.next().await?, grab);
    let ended = cluster.wait_for_end(grab).await?;
    paused.signal(Signal::CONT)?;
    let accepted = report(endpoint.connect().await?, &assignment, picture(RED)).await?;
    assert!(!accepted, "the lease was taken over");
    let url = cluster.get(&edge, grab).await?["image_url"].as_str().context("an image")?.to_owned();
    assert_eq!(cluster.image(&edge, &url).await?, picture(BLUE));
    assert_eq!((ended.attempts, cluster.credits_left().await?), (2, CREDITS - 1));
    // It joins again under a new id, and takes work again.
    paused.wait_for_log("joined the cluster again").await?;
    poll("the new id", async || {
        let nodes = cluster.store.nodes().list_nodes().await?;
        let at = |alive: bool| nodes.iter().filter(|node| node.is_alive == alive).count();
        Ok(((at(true), at(false)) == (3, 1)).then_some(()))
    })
    .await?;
    drop((held, renderer));
    let mut renderer = ScriptedRenderer::attach(&[paused.renderers()], 1, RED, false);
    let grab = cluster.queue(&edge).await?;
    assert_eq!(renderer.next().await?, grab);
    cluster.wait_for_end(grab).await?;
    drop(renderer);
    for process in [edge, other, paused] {
        process.stop().await?;
    }
    cluster.finish().await;
    Ok(())
}
