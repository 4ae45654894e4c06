//! What edges share with each other and with cores: the rate limit, the expected wait, and the end of a capture.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use grabd_domain::grabs::State;
use grabd_tests::agent::MODERN;
use grabd_tests::harness::ALLOWED;
use grabd_tests::s3_server::S3Server;
use reqwest::Method;
use serde_json::{Value, json};

use super::RED;
use super::processes::{CREDITS, Process, TestCluster, variable};
use super::renderer::{ScriptedRenderer, picture};

/// Requests per minute in the test of the limit.
const PER_MINUTE: u32 = 60;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edges_together_admit_the_requests_per_minute_of_a_team() -> Result<()> {
    let cluster = TestCluster::start().await?;
    let limit = PER_MINUTE.to_string();
    let settings = [("GRABD_LIMITS__REQUESTS_PER_MINUTE", limit.as_str())];
    let edges = tokio::try_join!(cluster.edge_named("one", &settings), cluster.edge_named("other", &settings))?;
    let request = async |edge: &Process| {
        let request = cluster.client.get(format!("http://{}/v1/usage", edge.http));
        let response = request.bearer_auth(cluster.team.live.expose()).send().await?;
        anyhow::Ok(response.status().as_u16())
    };
    let start = Instant::now();
    let mut admitted = 0;
    let mut refused = 0;
    // Each alone would admit all of them.
    for _ in 0..PER_MINUTE / 6 {
        let both = (0..6).flat_map(|_| [&edges.0, &edges.1]).map(&request);
        for status in try_join_all(both).await? {
            match status {
                200 => admitted += 1,
                429 => refused += 1,
                status => anyhow::bail!("{status}"),
            }
        }
    }
    // One more per second, and a lease of each process.
    let refilled = u32::try_from(start.elapsed().as_secs())? + 1;
    let leases = 2 * (PER_MINUTE / 10);
    ensure!(admitted <= PER_MINUTE + refilled + leases, "{admitted} in {refilled} s");
    ensure!(admitted + leases >= PER_MINUTE && refused > 0, "{admitted} admitted, {refused} refused");
    edges.0.stop().await?;
    edges.1.stop().await?;
    cluster.execute("UPDATE rate_cell SET tat = tat - 121000000").await?;
    ensure!(cluster.store.limits().purge_rate_cells().await? == 1, "the unused row is deleted");
    cluster.finish().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn render_ends_when_its_caller_at_an_edge_cancels() -> Result<()> {
    let cluster = TestCluster::start().await?;
    let (core, edge) = tokio::try_join!(cluster.core("core"), cluster.edge())?;
    // The first render never ends by itself, and takes the only slot.
    let mut renderer = ScriptedRenderer::attach(&[core.renderers()], 1, RED, true);
    edge.wait_until_ready(&cluster.client).await?;
    // MCP cancels the grab of a call that is dropped.
    let body = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {
            "name": "create_grab",
            "arguments": { "url": format!("http://{ALLOWED}/page") },
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            },
        },
    });
    let mut call = cluster.client.post(format!("http://{}/mcp", edge.http)).bearer_auth(cluster.team.live.expose());
    for (name, value) in [
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", MODERN),
        ("mcp-method", "tools/call"),
        ("mcp-name", "create_grab"),
    ] {
        call = call.header(name, value);
    }
    let call = call.json(&body).send();
    let first = tokio::select! {
        grab = renderer.next() => grab?,
        response = call => anyhow::bail!("{:?}", response?.text().await?),
    };
    // The call was dropped, so the slot is free for another grab at once, not after 25 seconds.
    let ended = cluster.wait_for_end(first).await?;
    ensure!(matches!(ended.state, State::Failed { .. }), "{ended:?}");
    let second = cluster.queue(&edge).await?;
    let next = tokio::time::timeout(Duration::from_secs(15), renderer.next()).await;
    assert_eq!(next.context("the render of the cancelled grab continues")??, second);
    cluster.wait_for_end(second).await?;
    assert_eq!(cluster.credits_left().await?, CREDITS - 1);
    drop(renderer);
    edge.stop().await?;
    core.stop().await?;
    cluster.finish().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn image_that_is_deleted_at_one_edge_is_gone_at_all() -> Result<()> {
    let (cluster, bucket) = (TestCluster::start().await?, S3Server::start().await?);
    let settings: Vec<_> = bucket.settings().into_iter().map(|(name, value)| (variable(name), value)).collect();
    let settings: Vec<_> = settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let core = cluster.core_with("core", &settings).await?;
    let edges = tokio::try_join!(cluster.edge_named("one", &settings), cluster.edge_named("other", &settings))?;
    let renderer = ScriptedRenderer::attach(&[core.renderers()], 1, RED, false);
    let grab = cluster.queue(&edges.0).await?;
    cluster.wait_for_end(grab).await?;
    let shown = cluster.get(&edges.0, grab).await?;
    let url = shown["image_url"].as_str().context("an image")?;
    for edge in [&edges.0, &edges.1] {
        assert_eq!(cluster.image(edge, url).await?, picture(RED));
    }
    // The object still exists while the store is slow to delete it.
    let pause = bucket.pause_next(Method::POST);
    let delete = cluster.client.delete(format!("http://{}/v1/grabs/{grab}", edges.0.http));
    let mut deleted = Box::pin(delete.bearer_auth(cluster.team.live.expose()).send());
    tokio::select! {
        () = pause.reached() => {}
        response = &mut deleted => anyhow::bail!("answered before the object is gone: {response:?}"),
    }
    assert_eq!(bucket.objects()?.len(), 1);
    for edge in [&edges.0, &edges.1] {
        let error = cluster.image(edge, url).await.err().context("a deleted image is shown")?;
        ensure!(error.to_string().contains("404"), "{error:#}");
        assert_eq!(cluster.get(edge, grab).await?["image_url"], Value::Null);
    }
    pause.release();
    assert_eq!(deleted.await?.status(), 204);
    ensure!(bucket.objects()?.is_empty());
    drop(renderer);
    for process in [edges.0, edges.1, core] {
        process.stop().await?;
    }
    cluster.finish().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edge_refuses_captures_that_would_wait_too_long() -> Result<()> {
    let cluster = TestCluster::start().await?;
    let edge = cluster.edge().await?;
    // A core as its row describes it: busy for 200 seconds with each render.
    let slow = "INSERT INTO node (id, role, started_at, heartbeat_at, version, address, slots, render_ms) \
                VALUES ('00000000-0000-0000-0000-000000000001', 'core', 0, 9000000000000, '', '', 1, 200000)";
    cluster.execute(slow).await?;
    // It knows of the core.
    edge.wait_until_ready(&cluster.client).await?;
    let refused = cluster.create_refused(&edge).await?;
    ensure!(refused.summary() == (429, "rate_limit_exceeded", "service"), "{refused:?}");
    ensure!(refused.message.contains("200 s"), "{refused:?}");
    let (status, queued) = cluster.create(&edge, true).await?;
    ensure!(status == 202, "{status} {queued}");
    edge.stop().await?;
    cluster.finish().await;
    Ok(())
}
