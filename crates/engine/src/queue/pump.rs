//! Leases waiting jobs for idle slots.

use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::grabs::Class;
use grabd_domain::ids::SessionId;
use grabd_domain::limits::RENDER_BUDGET;
use grabd_store::{Ask, Leased};

use super::{Lease, Reservation};
use crate::chance;
use crate::core::Core;
use crate::failpoints::{self, Step};

/// How often the table is asked although nobody rang: every hint may be lost.
const POLL: Duration = Duration::from_secs(1);
/// Every so many rounds, asynchronous jobs are asked for first, so that synchronous ones never starve them.
const ASYNC_FIRST_EVERY: u64 = 5;

/// Runs until the core stops.
pub(crate) async fn run(core: Core) {
    let mut poll = tokio::time::interval(POLL);
    let mut rounds: u64 = 0;
    loop {
        tokio::select! {
            () = core.stop.cancelled() => return,
            () = core.dispatcher.rung() => {}
            _ = poll.tick() => look(&core).await,
        }
        let mut idle = core.dispatcher.reserve_for_waiting();
        if idle.is_empty() {
            continue;
        }
        rounds += 1;
        let order: &[Class] = match (core.dispatcher.is_draining(), rounds.is_multiple_of(ASYNC_FIRST_EVERY)) {
            (true, _) => &[Class::Sync],
            (false, true) => &[Class::Async, Class::Sync],
            (false, false) => &Class::ALL,
        };
        // One session at a time, since a lease belongs to a session.
        idle.sort_by_key(Reservation::session);
        while let Some(session) = idle.last().map(Reservation::session) {
            let first = idle.iter().position(|slot| slot.session() == session).unwrap_or(0);
            serve(&core, session, idle.split_off(first), order).await;
        }
    }
}

/// Rings the bell when the table has something that nobody told us about.
async fn look(core: &Core) {
    for class in Class::ALL {
        match core.store.has_waiting(class).await {
            Ok(true) => return core.dispatcher.ring(),
            Ok(false) => {}
            Err(error) => return tracing::warn!(%error, "the queue could not be read; trying again"),
        }
    }
}

async fn serve(core: &Core, session: SessionId, mut slots: Vec<Reservation<'_>>, order: &[Class]) {
    for &class in order {
        if slots.is_empty() {
            return;
        }
        let ask = Ask {
            class,
            session,
            now: core.clock.now(),
            slots: slots.iter().map(|_| (chance::lease_token(), chance::random())).collect(),
        };
        let asked = slots.len();
        match core.store.lease(ask).await {
            Ok(leased) => {
                if leased.len() == asked {
                    // There may be more than we had slots for.
                    core.dispatcher.ring();
                }
                for job in leased {
                    let Some(slot) = slots.pop() else { return };
                    hand_over(core, slot, job).await;
                }
            }
            Err(error) => {
                tracing::warn!(%error, "jobs could not be leased; trying again");
                // The next poll finds them.
                return;
            }
        }
    }
}

async fn hand_over(core: &Core, slot: Reservation<'_>, job: Leased) {
    let now = core.clock.now();
    let Leased { grab, token, upload_key, spec, deadline_at, attempt, .. } = job;
    let lease = Lease { grab, token, upload_key, spec, budget: budget(now, deadline_at), attempt };
    if slot.assign(&lease).is_err() || failpoints::reach(core, Step::Assigned, Some((grab, token))).await.is_err() {
        super::sweep::release(core, grab, token, "the session was gone").await;
        return;
    }
    if core.watchers.is_watched(grab) {
        match core.store.find_grabs(&[grab]).await {
            Ok(grabs) => grabs.into_iter().for_each(|grab| core.watchers.publish(grab)),
            Err(error) => tracing::warn!(%error, grab.id = %grab, "a watched grab could not be read"),
        }
    }
}

/// What an attempt that starts now may take.
pub(crate) fn budget(now: Timestamp, deadline_at: Timestamp) -> Duration {
    deadline_at.since(now).min(RENDER_BUDGET)
}
