//! The scheduler: finds what is due, in bounded portions.
//!
//! Each round finishes runs whose grabs have ended, sends the alerts of quiet hours that have ended, starts runs whose start was
//! interrupted or refused for now, and claims monitors that are due. Several processes may do this at the same time: a transaction
//! decides which of them claims a monitor, starts a run, finishes it and sends its alerts.

use std::time::Duration;

use futures::future::try_join_all;
use grabd_domain::ids::RunId;
use grabd_domain::monitor::RunOutcome;
use grabd_store::Error;
use grabd_store::monitors::{Leased, RunResult, StartRun};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{MissedTickBehavior, interval};

use super::files;
use super::finish::{finish, send_held};
use super::start::{self, Claim, START_LEASE};
use crate::service::Core;

/// How often the tables are polled without a notification.
const POLL: Duration = Duration::from_secs(1);
/// Runs that are finished at the same time, so that texts that are slow to compare delay few others.
const FINISHED_TOGETHER: usize = 4;
/// Rows read at a time.
const BATCH: u32 = 100;

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
                Err(error) => failed(&core, &error),
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
    let sent = send_held_alerts(core).await?;
    let started = start_interrupted(core).await?;
    let claimed = claim_due(core).await?;
    Ok(ended || sent || started || claimed)
}

/// Finishes runs whose grabs have ended. Returns whether there may be more.
async fn finish_ended(core: &Core) -> Result<bool, Error> {
    let ended = core.store.monitors().ended_runs(core.clock.now(), BATCH).await?;
    for runs in ended.chunks(FINISHED_TOGETHER) {
        try_join_all(runs.iter().map(|run| finish_one(core, *run))).await?;
    }
    Ok(has_as_many(&ended, BATCH))
}

/// Finishes a run whose grab has ended.
async fn finish_one(core: &Core, run: RunId) -> Result<(), Error> {
    let found = files::compare(core, run).await?;
    finish(core, run, RunResult::Grab(found)).await
}

/// Sends the alerts of quiet hours that have ended. Returns whether there may be more.
async fn send_held_alerts(core: &Core) -> Result<bool, Error> {
    let held = core.store.monitors().held_alerts(core.clock.now(), BATCH).await?;
    for monitor in &held {
        send_held(core, *monitor).await?;
    }
    Ok(has_as_many(&held, BATCH))
}

/// Starts runs that have no grab, because a start was interrupted or refused for now. Returns whether there may be more.
///
/// # Errors
/// Errors of the database as a whole.
async fn start_interrupted(core: &Core) -> Result<bool, Error> {
    let limit = core.monitors.free_starts().min(BATCH);
    if limit == 0 {
        return Ok(false);
    }
    let unstarted = core.store.monitors().unstarted_runs(core.clock.now(), limit).await?;
    for run in &unstarted {
        let Some(permit) = core.monitors.start_permit() else { break };
        let now = core.clock.now();
        match core.store.monitors().lease_run(*run, now, now + START_LEASE).await? {
            Some(Leased::Run(start)) => spawn_start(core, *start, permit),
            Some(Leased::Missed(run)) => {
                core.metrics.run_ended(RunOutcome::Missed);
                tracing::info!(run.id = %run, "the monitor of a run may make no captures any more");
            }
            None => {}
        }
    }
    Ok(has_as_many(&unstarted, limit))
}

/// Claims monitors that are due, and starts their runs. Returns whether there may be more.
///
/// # Errors
/// Errors of the database as a whole.
async fn claim_due(core: &Core) -> Result<bool, Error> {
    let limit = core.monitors.free_starts().min(BATCH);
    if limit == 0 {
        return Ok(false);
    }
    let due = core.store.monitors().due(core.clock.now(), limit).await?;
    let mut claimed = 0;
    for monitor in &due {
        let Some(permit) = core.monitors.start_permit() else { break };
        match start::claim(core, *monitor).await? {
            Claim::Run(start) => spawn_start(core, *start, permit),
            Claim::None => {}
            Claim::Elsewhere => continue,
        }
        claimed += 1;
    }
    // If other processes have claimed all of them, the next poll is soon enough.
    Ok(has_as_many(&due, limit) && claimed > 0)
}

/// Starts a run in a task of its own: it waits for the resolver, which must not delay other runs.
fn spawn_start(core: &Core, start: StartRun, permit: OwnedSemaphorePermit) {
    let owned = core.clone();
    core.spawn(async move {
        if let Err(error) = start::run(&owned, &start).await {
            failed(&owned, &error);
        }
        let was_last = owned.monitors.free_starts() == 0;
        drop(permit);
        if was_last {
            owned.monitors.notify();
        }
    });
}

fn failed(core: &Core, error: &Error) {
    core.metrics.sweep_failed("monitors");
    tracing::warn!(%error, cause = ?error, "a step of the monitors failed; trying again");
}

fn has_as_many<T>(rows: &[T], limit: u32) -> bool {
    u32::try_from(rows.len()).unwrap_or(u32::MAX) >= limit
}

#[cfg(test)]
#[path = "scheduler_tests.rs"]
mod tests;
