//! Periodic repair: expired leases and deadlines, and states written by other processes. Each step is independent of
//! the others.

use std::time::{Duration, Instant};

use grabd_domain::ids::{GrabId, LeaseToken, SessionId};
use grabd_store::grabs::{LostLeases, ReleaseOutcome};

use super::clock_check::ClockCheck;
use super::hints;
use super::record_end;
use super::step::step;
use crate::admission::{self, SlotUse};
use crate::bus::Changed;
use crate::failpoints::{self, Step};
use crate::service::Core;

/// How often expired leases and deadlines, and states written by other processes, are checked. Watchers are to see
/// every change within one second, hence half of that.
pub(crate) const INTERVAL: Duration = Duration::from_millis(500);
/// Maximum number of rows processed in one sweep, to keep it short.
const BATCH: u32 = 100;
/// Every n-th sweep also does the less urgent work.
const SLOW_EVERY: u32 = 20;
/// Backoff of a released job, multiplied by its number of attempts.
const BACK_OFF: Duration = Duration::from_millis(200);

/// Releases leased jobs at startup. Without a cluster, all belong to an earlier process, since this one is the only one
/// on its database. In a cluster, those of dead processes do.
pub(crate) async fn recover_leases(core: &Core) -> Result<(), grabd_store::Error> {
    let lost = if core.cluster.is_some() { LostLeases::DeadNodes } else { LostLeases::All };
    let mut count = 0;
    loop {
        let rescued = core.store.grabs().reclaim_leases(lost, core.clock.now(), BATCH).await?;
        count += rescued.len();
        if rescued.is_empty() {
            break;
        }
        failpoints::reach(core, Step::TakingOver, None).await?;
    }
    if count > 0 {
        tracing::info!(count, "requeued grabs that an earlier run left unfinished");
    }
    Ok(())
}

/// Runs until the core stops.
pub(crate) async fn run(core: Core) {
    let mut tick = tokio::time::interval(INTERVAL);
    let mut sweeps: u32 = 0;
    let mut clock = ClockCheck::new(core.clock.now(), Instant::now());
    loop {
        tokio::select! {
            () = core.stop.cancelled() => break,
            _ = tick.tick() => {}
        }
        sweeps = sweeps.wrapping_add(1);
        if clock.is_trusted(core.clock.now(), Instant::now()) {
            sweep(&core).await;
            if sweeps.is_multiple_of(SLOW_EVERY) {
                core.queue.admission.forget_full_budgets(core.clock.now());
                core.samples.forget_expired(core.clock.now());
                core.accounts.rate_limits.forget_unused_leases();
                step(&core, "team_limits", core.limits.refresh_payers(&core.store)).await;
            }
        }
    }
    if let Err(error) = core.accounts.last_use.write(&core.store, core.clock.now()).await {
        tracing::warn!(%error, "the last use of some keys and apps could not be recorded");
    }
}

async fn sweep(core: &Core) {
    if core.has_queue() && core.is_member() {
        step(core, "deadlines", expire_jobs(core)).await;
        step(core, "leases", rescue(core, LostLeases::Expired)).await;
        if core.cluster.is_some() {
            step(core, "nodes", rescue(core, LostLeases::DeadNodes)).await;
        }
    }
    core.queue.dispatcher.forget_expired(core.clock.now());
    step(core, "watchers", publish_watched(core)).await;
    step(core, "last_use", core.accounts.last_use.write(&core.store, core.clock.now())).await;
    step(core, "domains", core.grabs.domains.refresh(&core.store)).await;
    step(core, "team_limits", refresh_limits(core)).await;
    refresh_identity(core).await;
}

async fn refresh_identity(core: &Core) {
    if let Err(error) = core.identity.refresh(&core.store, &core.vault).await {
        core.metrics.sweep_failed("identity");
        tracing::warn!(%error, cause = ?error, "the keys of signatures could not be read; using the known ones");
    }
}

async fn refresh_limits(core: &Core) -> Result<(), grabd_store::Error> {
    if core.limits.refresh(&core.store).await? {
        core.accounts.forget_former_limits(&core.limits);
    }
    Ok(())
}

async fn expire_jobs(core: &Core) -> Result<(), grabd_store::Error> {
    for ended in core.store.grabs().expire_jobs(core.clock.now(), BATCH).await? {
        let lease = core.queue.dispatcher.cancel(ended.id);
        if let Some(lease) = lease {
            admission::slot_used(core, lease, SlotUse::Failed).await;
        }
        record_end(core, ended);
    }
    Ok(())
}

async fn publish_watched(core: &Core) -> Result<(), grabd_store::Error> {
    match failpoints::polls(core) {
        true => hints::read(core, &Changed::Unknown).await,
        false => Ok(()),
    }
}

/// Detaches a lost session and requeues its grabs immediately.
pub(crate) async fn session_lost(core: &Core, session: SessionId) {
    core.queue.dispatcher.detach(session);
    requeue_session(core, session).await;
    if core.cluster.is_some()
        && let Err(error) = core.store.nodes().remove_node_session(session).await
    {
        // The row is deleted with that of the process.
        tracing::warn!(%error, "a lost session could not be forgotten");
    }
}

/// Requeues the grabs of a session that a renderer had with another core. That core is dead, or does the same when it
/// notices the end of the session. Until then it may lease further grabs to the session, so the row of the session stays:
/// without it, these leases would count as those of a dead process.
pub(crate) async fn session_broke_elsewhere(core: &Core, session: SessionId) {
    if core.is_member() {
        requeue_session(core, session).await;
    }
}

async fn requeue_session(core: &Core, session: SessionId) {
    let released = rescue(core, LostLeases::Session(session)).await;
    if let Err(error) = released {
        tracing::warn!(%error, "grabs of a lost session could not be requeued; they will be when their leases expire");
    }
}

async fn rescue(core: &Core, dead: LostLeases) -> Result<(), grabd_store::Error> {
    for (grab, released) in core.store.grabs().reclaim_leases(dead, core.clock.now(), BATCH).await? {
        after_release(core, grab, released);
    }
    Ok(())
}

/// Releases a lease whose attempt did not finish. Returns whether the lease was still held.
pub(crate) async fn release(core: &Core, grab: GrabId, token: LeaseToken, cause: &str) -> bool {
    core.queue.dispatcher.forget(token);
    let released = match failpoints::reach(core, Step::Releasing, Some((grab, token))).await {
        Ok(()) => core.store.grabs().release(grab, token, core.clock.now()).await,
        Err(error) => Err(error),
    };
    match released {
        Ok(released) => {
            tracing::warn!(grab.id = %grab, cause, ?released, "a grab was requeued because its attempt did not finish");
            core.metrics.job_released();
            let held = !matches!(released, ReleaseOutcome::Stale);
            after_release(core, grab, released);
            held
        }
        Err(error) => {
            tracing::warn!(%error, grab.id = %grab, "a lease could not be released; it will expire");
            false
        }
    }
}

fn after_release(core: &Core, grab: GrabId, released: ReleaseOutcome) {
    match released {
        ReleaseOutcome::Requeued(attempts) => {
            let core = core.clone();
            let wait = BACK_OFF * attempts;
            core.clone().spawn(async move {
                tokio::select! {
                    () = core.stop.cancelled() => {}
                    // Backoff: the job may be leased again after this time, and nothing else notifies of that.
                    () = tokio::time::sleep(wait) => {
                        core.queue.dispatcher.notify();
                        core.bus.work_queued();
                    }
                }
            });
        }
        ReleaseOutcome::GivenUp(ended) => {
            tracing::error!(grab.id = %grab, "a grab failed after its last attempt");
            record_end(core, ended);
        }
        ReleaseOutcome::Stale => {}
    }
}
