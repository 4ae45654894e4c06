//! Reads what other processes have changed: states for those who wait for them, and ends of grabs that are rendered here.

use std::collections::BTreeSet;

use grabd_domain::grabs::{Grab, State};
use grabd_domain::ids::GrabId;
use grabd_store::Error;

use crate::admission::{self, SlotUse};
use crate::bus::{Changed, Hints};
use crate::service::Core;

/// Maximum number of grabs that are read at a time.
const BATCH: usize = 1000;

/// Runs until the core stops.
pub(crate) async fn run(core: Core) {
    loop {
        let Hints { work, changed } = tokio::select! {
            () = core.stop.cancelled() => return,
            hints = core.bus.received() => hints,
        };
        if work && core.has_queue() {
            core.queue.dispatcher.notify();
        }
        if let Err(error) = read(&core, &changed).await {
            // The next poll reads them.
            tracing::warn!(%error, "changed grabs could not be read");
        }
    }
}

/// Reads the changed grabs that somebody waits for or that are rendered here.
pub(super) async fn read(core: &Core, changed: &Changed) -> Result<(), Error> {
    let is_meant = |grab: &GrabId| match changed {
        Changed::Grabs(grabs) => grabs.contains(grab),
        Changed::Unknown => true,
    };
    let watched = core.queue.watchers.watched().into_iter();
    // Without a cluster, no other process ends them.
    let rendering = core.cluster.as_ref().map(|_| core.queue.dispatcher.rendering()).unwrap_or_default();
    let grabs: BTreeSet<GrabId> = watched.chain(rendering).filter(is_meant).collect();
    publish(core, grabs.into_iter().collect()).await
}

/// Publishes the current states of grabs, and ends the renders of those that have ended.
pub(super) async fn publish(core: &Core, grabs: Vec<GrabId>) -> Result<(), Error> {
    for chunk in grabs.chunks(BATCH) {
        for grab in core.store.grabs().find_grabs(chunk).await? {
            if core.cluster.is_some() {
                end_render(core, &grab).await;
            }
            core.queue.watchers.publish(grab);
        }
    }
    Ok(())
}

/// Ends the render of a grab that another process has ended: its caller has gone, or its time is over.
async fn end_render(core: &Core, grab: &Grab) {
    let is_rendered = || core.queue.dispatcher.rendering().contains(&grab.id);
    if matches!(grab.state, State::Failed { .. })
        && is_rendered()
        && let Some(lease) = core.queue.dispatcher.cancel(grab.id)
    {
        tracing::info!(grab.id = %grab.id, "a render was ended, since another process has ended its grab");
        admission::slot_used(core, lease, SlotUse::Failed).await;
    }
}
