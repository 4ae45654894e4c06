//! Writes the row of this process, and suspends its work while that is not possible.

use std::time::{Duration, Instant};

use grabd_domain::Timestamp;
use grabd_domain::ids::NodeId;
use grabd_store::nodes::NewNode;
use grabd_store::{Error, Store};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::{Cluster, Settings};
use crate::core::Core;
use crate::random;

/// How often the row is written.
pub(super) const INTERVAL: Duration = Duration::from_secs(2);
/// Time limit of a write.
const TIMEOUT: Duration = Duration::from_millis(1500);
/// Maximum difference between this machine's clock and the database's. Leases and deadlines are judged by the clock of
/// each process.
const MAX_SKEW: Duration = Duration::from_secs(5);

impl Cluster {
    /// Joins the cluster.
    ///
    /// # Errors
    /// Database errors only.
    pub(crate) async fn join(store: &Store, settings: Settings, now: Timestamp) -> Result<Self, Error> {
        let (node, began) = (random::node_id(now), Instant::now());
        store.add_node(new_node(node, &settings)).await?;
        tracing::info!(node.id = %node, role = %settings.role, "joined the cluster");
        let cluster = Self::new(settings, node, began);
        cluster.lock().nodes = store.list_nodes().await?;
        Ok(cluster)
    }
}

fn new_node(id: NodeId, Settings { role, address }: &Settings) -> NewNode {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    NewNode { id, role: role.to_string(), version, address: address.clone() }
}

/// Runs until the core stops.
pub(crate) async fn run(core: Core) {
    let Some(cluster) = core.cluster.clone() else { return };
    let mut tick = interval(INTERVAL);
    // After a pause of the process, one write is enough.
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = core.stop.cancelled() => return,
            _ = tick.tick() => {}
        }
        // Before the write: after a pause of the process, others may have taken over its leases.
        suspend_unless_member(&core, &cluster);
        match timeout(TIMEOUT, beat(&core, &cluster)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, "the heartbeat of this process could not be written; trying again")
            }
            Err(_) => tracing::warn!("the heartbeat of this process took too long; trying again"),
        }
        suspend_unless_member(&core, &cluster);
    }
}

/// Removes this process from the cluster, so that others need not wait until it is dead.
pub(crate) async fn leave(core: &Core, cluster: &Cluster) {
    let node = cluster.lock().node;
    match timeout(TIMEOUT, core.store.remove_node(node)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "this process could not leave the cluster; it counts as dead soon"),
        Err(_) => tracing::warn!("this process could not leave the cluster in time; it counts as dead soon"),
    }
}

fn suspend_unless_member(core: &Core, cluster: &Cluster) {
    if cluster.member(Instant::now()).is_ok() || std::mem::replace(&mut cluster.lock().is_suspended, true) {
        return;
    }
    tracing::error!("this process has lost contact with its cluster: it takes no work until it has joined again");
    core.queue.dispatcher.end_sessions();
}

async fn beat(core: &Core, cluster: &Cluster) -> Result<(), Error> {
    let (node, is_suspended) = {
        let state = cluster.lock();
        (state.node, state.is_suspended)
    };
    let (began, local) = (Instant::now(), core.clock.now());
    let slots = u32::try_from(core.queue.dispatcher.slot_count()).unwrap_or(u32::MAX);
    let written = match is_suspended {
        true => None,
        false => core.store.write_heartbeat(node, slots).await?.map(|at| (node, at)),
    };
    let (node, database) = match written {
        Some(written) => written,
        None => {
            // Its sessions belonged to the former id, whose leases others take over.
            core.queue.dispatcher.end_sessions();
            // Before it joins, so that a wrong clock does not add a row each time.
            if is_skewed(core, local, core.store.database_time().await?, began) {
                return Ok(());
            }
            let node = random::node_id(core.clock.now());
            (node, core.store.add_node(new_node(node, &cluster.settings)).await?)
        }
    };
    if is_skewed(core, local, database, began) {
        cluster.lock().is_suspended = true;
        core.queue.dispatcher.end_sessions();
        return Ok(());
    }
    let nodes = core.store.list_nodes().await?;
    let mut state = cluster.lock();
    if state.node != node {
        tracing::info!(node.id = %node, "joined the cluster again");
    }
    state.node = node;
    state.written_at = began;
    state.is_suspended = false;
    state.nodes = nodes;
    Ok(())
}

fn is_skewed(core: &Core, local: Timestamp, database: Timestamp, began: Instant) -> bool {
    let skew = Duration::from_millis(local.as_ms().abs_diff(database.as_ms()));
    // A slow response is no difference of clocks.
    let is_skewed = skew > MAX_SKEW + began.elapsed();
    if is_skewed {
        core.metrics.sweep_failed("cluster_clock");
        tracing::error!(
            seconds = skew.as_secs(),
            "this machine's clock differs from the database's: this process takes no work until they agree"
        );
    }
    is_skewed
}
