//! Leases waiting jobs to idle slots.

use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::capture::CaptureSpec;
use grabd_domain::grabs::{Class, Failure, RenderMetadata};
use grabd_domain::ids::{GrabId, LeaseToken, SessionId};
use grabd_store::grabs::{EndedGrab, FailGrab, FailureSource, LeaseRequest, LeasedJob};

use super::secrets::unseal;
use super::{Lease, OpenSlots, Reservation, hints};
use crate::failpoints::{self, Step};
use crate::proxies::{self, RouteError};
use crate::random;
use crate::service::Core;

/// How often the table is polled without a notification, since notifications may be lost.
const POLL: Duration = Duration::from_secs(1);
/// Every n-th round leases asynchronous jobs first, so that synchronous jobs cannot starve them.
const ASYNC_FIRST_EVERY: u64 = 5;

/// Runs until the core stops.
pub(crate) async fn run(core: Core) {
    let mut poll = tokio::time::interval(POLL);
    let mut rounds: u64 = 0;
    loop {
        tokio::select! {
            () = core.stop.cancelled() => return,
            () = core.queue.dispatcher.notified() => {}
            _ = poll.tick() => {
                if failpoints::polls(&core) {
                    check_table(&core).await;
                }
            }
        }
        if !core.is_member() {
            continue;
        }
        let mut idle = core.queue.dispatcher.reserve_for_waiting();
        if idle.is_empty() {
            continue;
        }
        rounds += 1;
        let order: &[Class] = match (core.queue.dispatcher.is_draining(), rounds.is_multiple_of(ASYNC_FIRST_EVERY)) {
            (true, _) => &[Class::Sync],
            (false, true) => &[Class::Async, Class::Sync],
            (false, false) => &Class::ALL,
        };
        let mut open = core.queue.dispatcher.open_slots(core.queue.admission.kept_percent(core.clock.now()));
        // By session, since a lease belongs to one session.
        idle.sort_by_key(Reservation::session);
        while let Some(session) = idle.last().map(Reservation::session) {
            let first = idle.iter().position(|slot| slot.session() == session).unwrap_or(0);
            lease_for_session(&core, session, idle.split_off(first), order, &mut open).await;
        }
    }
}

/// Notifies the dispatcher when the table has waiting jobs.
async fn check_table(core: &Core) {
    for class in Class::ALL {
        match core.store.grabs().has_waiting(class).await {
            Ok(true) => return core.queue.dispatcher.notify(),
            Ok(false) => {}
            Err(error) => return tracing::warn!(%error, "the queue could not be read; trying again"),
        }
    }
}

/// Leases jobs for the slots of a session: at most `open` of them for payers that never paid, the rest for others.
async fn lease_for_session(
    core: &Core,
    session: SessionId,
    mut slots: Vec<Reservation<'_>>,
    order: &[Class],
    open: &mut OpenSlots<'_>,
) {
    for &class in order {
        while !slots.is_empty() {
            let only_paid = open.left() == 0;
            let requested = if only_paid { slots.len() } else { slots.len().min(open.left()) };
            let ask = LeaseRequest {
                class,
                session,
                now: core.clock.now(),
                slots: (0..requested).map(|_| (random::lease_token(), random::random())).collect(),
                only_paid,
            };
            let leased = match core.store.grabs().lease(ask).await {
                Ok(leased) => leased,
                Err(error) => {
                    tracing::warn!(%error, "jobs could not be leased; trying again");
                    // The next poll leases them.
                    return;
                }
            };
            let is_exhausted = leased.len() < requested;
            for job in leased {
                let Some(slot) = slots.pop() else { return };
                let has_paid = job.payer.has_paid;
                assign(core, slot, job).await;
                if !has_paid {
                    open.take();
                }
            }
            if is_exhausted {
                break;
            }
        }
    }
    if slots.is_empty() {
        // There may be more jobs than slots.
        core.queue.dispatcher.notify();
    } else if open.left() == 0 {
        core.queue.dispatcher.hold_back();
    }
}

async fn assign(core: &Core, slot: Reservation<'_>, job: LeasedJob) {
    let now = core.clock.now();
    let LeasedJob { grab, team, token, upload_key, spec, secrets, deadline_at, attempt, payer, .. } = job;
    let Some(spec) = unseal(&core.vault, grab, spec, secrets.as_deref()) else {
        tracing::error!(grab.id = %grab, "the secret options of a grab cannot be decrypted: is it the right key file?");
        super::sweep::release(core, grab, token, "its secret options could not be decrypted").await;
        return;
    };
    let proxy = match proxies::route(core, team, &spec).await {
        Ok(proxy) => proxy,
        Err(RouteError::Gone(failure)) => return fail(core, grab, token, failure).await,
        Err(RouteError::Unread(error)) => {
            tracing::error!(%error, grab.id = %grab, "the proxy of a grab could not be read");
            super::sweep::release(core, grab, token, "its proxy could not be read").await;
            return;
        }
    };
    if core.cluster.is_some() && payer.has_paid {
        core.queue.admission.note_paying(now);
    }
    let budget = budget(now, deadline_at, &spec);
    let lease = Lease { grab, token, upload_key, spec, proxy, budget, attempt, payer, since: now };
    if slot.assign(lease).is_err() || failpoints::reach(core, Step::Assigned, Some((grab, token))).await.is_err() {
        super::sweep::release(core, grab, token, "the session was gone").await;
        return;
    }
    core.bus.grab_changed(grab);
    if core.queue.watchers.is_watched(grab)
        && let Err(error) = hints::publish(core, vec![grab]).await
    {
        tracing::warn!(%error, grab.id = %grab, "a watched grab could not be read");
    }
}

/// Ends a grab that cannot be rendered. If that fails, its lease expires, and it is tried again.
async fn fail(core: &Core, grab: GrabId, token: LeaseToken, failure: Failure) {
    let (source, metadata) = (FailureSource::Lease(token), RenderMetadata::default());
    match core.store.grabs().fail(FailGrab { grab, source, failure, metadata, now: core.clock.now() }).await {
        Ok(Some(EndedGrab { grab })) => super::record_end(core, grab),
        Ok(None) => {}
        Err(error) => tracing::warn!(%error, grab.id = %grab, "a grab could not be ended; its lease will expire"),
    }
}

/// Time limit of an attempt that starts now.
pub(crate) fn budget(now: Timestamp, deadline_at: Timestamp, spec: &CaptureSpec) -> Duration {
    deadline_at.since(now).min(spec.render_budget())
}
