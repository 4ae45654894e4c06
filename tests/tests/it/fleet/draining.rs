//! A renderer that stops while a render is in progress.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use grabd_domain::grabs::State;

use super::processes::TestCluster;
use super::renderer::ScriptedRenderer;
use super::{BLUE, RED};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grab_does_not_wait_for_a_renderer_that_stops() -> Result<()> {
    let cluster = TestCluster::start().await?;
    let (core, edge) = tokio::try_join!(cluster.core("core"), cluster.edge())?;
    // Its first render never ends, so it cannot finish stopping.
    let mut stopping = ScriptedRenderer::attach(&[core.renderers()], 4, RED, true);
    edge.wait_until_ready(&cluster.client).await?;
    let first = cluster.queue(&edge).await?;
    assert_eq!(stopping.next().await?, first);
    stopping.stop().await?;

    let second = cluster.queue(&edge).await?;
    let mut other = ScriptedRenderer::attach(&[core.renderers()], 1, BLUE, false);
    // At once, not when the lease of a slot of the first renderer has ended.
    let next = tokio::time::timeout(Duration::from_secs(15), other.next()).await;
    assert_eq!(next.context("the grab waits for the renderer that stops")??, second);
    let ended = cluster.wait_for_end(second).await?;
    ensure!(matches!(ended.state, State::Done { .. }) && ended.attempts <= 2, "{ended:?}");
    edge.kill().await?;
    core.kill().await?;
    cluster.finish().await;
    Ok(())
}
