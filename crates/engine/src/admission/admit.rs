//! Admits creates, and records how slots were used.

use std::time::Duration;

use grabd_domain::admission::{Payer, WaitLimit};
use grabd_domain::credentials::Caller;
use grabd_domain::limits::MAX_RENDER_BUDGET;
use grabd_domain::{Fault, Timestamp};

use super::ended_lease::EndedLease;
use super::load::Load;
use super::{SlotUse, whole_seconds};
use crate::billing::find_payer;
use crate::error::Error;
use crate::service::Core;

/// Admits a live create, before anything is stored. Returns the payer that it is counted for: those of links have one of
/// their own, so that whoever opens published links takes neither turns nor failed time from the API of their team.
///
/// # Errors
/// [`Fault::FailedRenderTimeExceeded`].
pub(crate) async fn admit(core: &Core, caller: Caller, is_link: bool) -> Result<Payer, Error> {
    let payer = find_payer(core, caller.team).await?;
    let payer = if is_link { payer.for_links() } else { payer };
    core.queue
        .admission
        .check(payer, core.clock.now())
        .inspect_err(|_| core.metrics.admission_refused("failed_renders"))?;
    Ok(payer)
}

/// The limit of the expected wait of a synchronous grab with this much time left. In a cluster, all cores work off one
/// queue; what is known of the others is a few seconds old.
pub(crate) fn wait_limit(core: &Core, payer: Payer, left: Duration) -> WaitLimit {
    load(core).wait_limit(payer, left)
}

/// How busy the renderers of this process are, and those of the other processes of its cluster.
pub(super) fn load(core: &Core) -> Load {
    let others = core.cluster.iter().flat_map(|cluster| cluster.other_loads());
    others.fold(own_load(core), |load, (slots, other)| load.with(Load::of_node(slots, other)))
}

/// The number of slots, in a cluster those of all processes.
pub(crate) fn slots(core: &Core) -> usize {
    load(core).occupancy.slots
}

/// How busy the renderers of this process are.
pub(crate) fn own_load(core: &Core) -> Load {
    let admission = &core.queue.admission;
    admission.load(core.queue.dispatcher.occupancy(admission.kept_percent(core.clock.now())))
}

/// The fault of a grab that was refused because of its expected wait.
pub(crate) fn refuse_wait(core: &Core, expected: Duration) -> Fault {
    core.metrics.admission_refused("expected_wait");
    Fault::QueueTooLong { wait_s: whole_seconds(expected) }
}

/// Records how long a slot was used, and delays the payer's waiting jobs if its budget is empty.
pub(crate) async fn slot_used(core: &Core, ended: EndedLease, used: SlotUse) {
    let now = core.clock.now();
    // A page that fails now probably lost its earlier attempts, too.
    let took = ended.used(now) + if used == SlotUse::Failed { ended.lost } else { Duration::ZERO };
    let until = core.queue.admission.record(ended.payer, took, used, now);
    delay_jobs(core, ended.payer, until).await;
}

/// Takes time from a payer's budget of failed renders: that for which a page used its slot after its result.
pub(crate) async fn charge(core: &Core, payer: Payer, took: Duration) {
    let until = core.queue.admission.spend(payer, took.min(MAX_RENDER_BUDGET), core.clock.now());
    delay_jobs(core, payer, until).await;
}

async fn delay_jobs(core: &Core, payer: Payer, until: Option<Timestamp>) {
    let Some(until) = until else { return };
    match core.store.grabs().delay_jobs(payer.id, until).await {
        Ok(0) => {}
        Ok(delayed) => {
            let payer = payer.id;
            tracing::info!(account.id = %payer, delayed, %until, "failed renders used up an account's budget");
        }
        // They are leased before others' jobs are; the payer's next creates are refused anyway.
        Err(error) => tracing::warn!(%error, "the jobs of an account could not be delayed"),
    }
}
