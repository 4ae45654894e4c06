//! Two edges, two cores and a scripted renderer, which renders as long as a quick page takes.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;

use super::processes::{Process, TestCluster};
use super::renderer::ScriptedRenderer;

/// How long a render takes.
pub(super) const RENDER: Duration = Duration::from_millis(100);
/// Slots of the renderer.
const SLOTS: usize = 4;

/// The processes.
pub(super) struct SmallFleet {
    pub(super) edges: Vec<Process>,
    pub(super) cores: Vec<Process>,
    renderer: ScriptedRenderer,
}

impl SmallFleet {
    /// Starts the processes with these settings in addition to those of the cluster.
    pub(super) async fn start(cluster: &TestCluster, settings: &[(&str, &str)]) -> Result<Self> {
        Self::start_with(cluster, settings, async |cores| Ok(cores)).await
    }

    /// The same, with a renderer that reaches the cores at other addresses.
    pub(super) async fn start_with(
        cluster: &TestCluster,
        settings: &[(&str, &str)],
        reached_at: impl AsyncFnOnce([SocketAddr; 2]) -> Result<[SocketAddr; 2]>,
    ) -> Result<Self> {
        let settings = [settings, &[("GRABD_WEBHOOKS__ALLOW_HTTP", "true")]].concat();
        let (first, second, one, other) = tokio::try_join!(
            cluster.core_with("first", &settings),
            cluster.core_with("second", &settings),
            cluster.edge_named("one", &settings),
            cluster.edge_named("other", &settings),
        )?;
        let cores = reached_at([first.renderers(), second.renderers()]).await?;
        let renderer = ScriptedRenderer::attach_taking(&cores, SLOTS, RENDER);
        let fleet = Self { edges: vec![one, other], cores: vec![first, second], renderer };
        for process in fleet.processes() {
            process.wait_until_ready(&cluster.client).await?;
        }
        Ok(fleet)
    }

    /// The addresses of the edges.
    pub(super) fn addresses(&self) -> Vec<String> {
        self.edges.iter().map(|edge| edge.http.to_string()).collect()
    }

    /// Attaches another renderer, which reaches the cores at these addresses.
    pub(super) async fn attach_renderer(&self, cores: &[SocketAddr]) -> Result<ScriptedRenderer> {
        let renderer = ScriptedRenderer::attach_taking(cores, SLOTS, RENDER);
        renderer.wait_until_attached(cores.len()).await?;
        Ok(renderer)
    }

    /// Kills the first core.
    pub(super) async fn kill_core(&mut self) -> Result<()> {
        self.cores.remove(0).kill().await
    }

    /// Kills the first edge.
    pub(super) async fn kill_edge(&mut self) -> Result<()> {
        self.edges.remove(0).kill().await
    }

    fn processes(&self) -> impl Iterator<Item = &Process> {
        self.cores.iter().chain(&self.edges)
    }

    /// Waits until all processes are ready, which have been running since their start, and stops them.
    pub(super) async fn stop(mut self, cluster: &TestCluster) -> Result<()> {
        for process in self.cores.iter_mut().chain(&mut self.edges) {
            process.check_running()?;
        }
        for process in self.processes() {
            process.wait_until_ready(&cluster.client).await?;
        }
        drop(self.renderer);
        for process in self.edges.into_iter().chain(self.cores) {
            process.stop().await?;
        }
        Ok(())
    }
}
