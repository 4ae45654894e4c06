//! Writes the row of this process, and suspends its work while that is not possible.

use std::time::{Duration, Instant};

use grabd_domain::Timestamp;
use grabd_store::Error;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::{Cluster, INTERVAL, TIMEOUT};
use crate::admission;
use crate::random;
use crate::service::Core;

/// Maximum difference between this machine's clock and the database's. Leases and deadlines are judged by the clock of
/// each process.
const MAX_SKEW: Duration = Duration::from_secs(5);

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
                tracing::warn!(%error, "the heartbeat of this process could not be written; trying again");
            }
            Err(_) => tracing::warn!("the heartbeat of this process took too long; trying again"),
        }
        suspend_unless_member(&core, &cluster);
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
    let (slots, load) = admission::own_load(core).to_node();
    let written = match is_suspended {
        true => None,
        false => core.store.nodes().write_heartbeat(node, slots, load).await?.map(|at| (node, at)),
    };
    let (node, database) = match written {
        Some(written) => written,
        None => {
            // Its sessions belonged to the former id, whose leases others take over.
            core.queue.dispatcher.end_sessions();
            // Before it joins, so that a wrong clock does not add a row each time.
            if is_skewed(core, local, core.store.retention().database_time().await?, began) {
                return Ok(());
            }
            let node = random::node_id(core.clock.now());
            (node, core.store.nodes().add_node(cluster.settings.new_node(node)).await?)
        }
    };
    if is_skewed(core, local, database, began) {
        cluster.lock().is_suspended = true;
        core.queue.dispatcher.end_sessions();
        return Ok(());
    }
    let nodes = core.store.nodes().list_nodes().await?;
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
