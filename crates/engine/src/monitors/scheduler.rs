//! The scheduler: finds what is due, in bounded portions.
//!
//! Each round finishes runs whose grabs have ended, starts runs whose start was interrupted or refused for now, and claims
//! monitors that are due. Several processes may do this at the same time: a transaction decides which of them claims a monitor,
//! starts a run and finishes it.

use std::time::Duration;

use futures::future::join_all;
use grabd_domain::ids::RunId;
use grabd_store::Error;
use grabd_store::monitors::RunResult;
use tokio::time::{MissedTickBehavior, interval};

use super::finish::finish;
use super::start::{self, START_LEASE};
use crate::service::Core;

/// How often the tables are polled without a notification.
const POLL: Duration = Duration::from_secs(1);
/// Rows read at a time.
const BATCH: u32 = 100;
/// Runs that are started at the same time. Most of a start waits for the resolver.
const CONCURRENT: usize = 8;

/// Runs until the core drains or stops.
pub(crate) async fn run(core: Core) {
    let mut poll = interval(POLL);
    poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = core.draining.cancelled() => break,
            () = core.stop.cancelled() => break,
            () = core.monitors.notified() => {}
            _ = poll.tick() => {}
        }
        if !core.is_member() {
            continue;
        }
        tokio::select! {
            // Each transaction is complete or rolled back, and the start of a run can be repeated.
            () = core.draining.cancelled() => break,
            () = core.stop.cancelled() => break,
            result = round(&core) => match result {
                Ok(true) => core.monitors.notify(),
                Ok(false) => {}
                Err(error) => {
                    core.metrics.sweep_failed("monitors");
                    tracing::warn!(%error, cause = ?error, "a round of the monitors failed; trying again");
                }
            }
        }
    }
}

/// Does what is due now. Returns whether there is more.
///
/// # Errors
/// Errors of the database as a whole.
async fn round(core: &Core) -> Result<bool, Error> {
    let ended = finish_ended(core).await?;
    let started = start_interrupted(core).await?;
    let claimed = claim_due(core).await?;
    Ok(ended || started || claimed)
}

/// Finishes runs whose grabs have ended. Returns whether there may be more.
async fn finish_ended(core: &Core) -> Result<bool, Error> {
    let ended = core.store.monitors().ended_runs(core.clock.now(), BATCH).await?;
    let is_full = is_full(ended.len());
    for run in ended {
        finish(core, run, RunResult::Grab).await?;
    }
    Ok(is_full)
}

/// Starts runs that have no grab, because a start was interrupted or refused for now. Returns whether there may be more.
async fn start_interrupted(core: &Core) -> Result<bool, Error> {
    let unstarted = core.store.monitors().unstarted_runs(core.clock.now(), BATCH).await?;
    let is_full = is_full(unstarted.len());
    for runs in unstarted.chunks(CONCURRENT) {
        let starts: Vec<_> = runs.iter().map(|run| start_again(core, *run)).collect();
        join_all(starts).await.into_iter().collect::<Result<(), Error>>()?;
    }
    Ok(is_full)
}

/// Leases a run without a grab, and starts it.
async fn start_again(core: &Core, run: RunId) -> Result<(), Error> {
    let now = core.clock.now();
    match core.store.monitors().lease_run(run, now, now + START_LEASE).await? {
        Some(start) => start::run(core, &start).await,
        None => Ok(()),
    }
}

/// Claims monitors that are due, and starts their runs. Returns whether there may be more.
async fn claim_due(core: &Core) -> Result<bool, Error> {
    let due = core.store.monitors().due(core.clock.now(), BATCH).await?;
    let is_full = is_full(due.len());
    let mut claimed = false;
    for monitors in due.chunks(CONCURRENT) {
        let claims: Vec<_> = monitors.iter().map(|monitor| start::claim(core, *monitor)).collect();
        let results = join_all(claims).await.into_iter().collect::<Result<Vec<bool>, Error>>()?;
        claimed |= results.contains(&true);
    }
    // If other processes have claimed all of them, the next poll is soon enough.
    Ok(is_full && claimed)
}

fn is_full(rows: usize) -> bool {
    u32::try_from(rows).unwrap_or(u32::MAX) >= BATCH
}

#[cfg(test)]
#[path = "scheduler_tests.rs"]
mod tests;
