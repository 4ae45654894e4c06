//! The scheduler: finds what is due, in bounded portions.
//!
//! Each round stores the results of captures that have ended, and leases jobs that are due. Several processes may do this at the same
//! time: a transaction decides which of them leases a job, begins a page and stores its result.

use std::time::Duration;

use futures::future::try_join_all;
use grabd_domain::ids::SitePageId;
use grabd_store::Error;
use grabd_store::sites::{LeasedSite, SiteTurn};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{MissedTickBehavior, interval};

use super::finish::report;
use super::links;
use super::turn::{self, LEASE};
use crate::failpoints::{self, Step};
use crate::service::Core;
use crate::webhooks::site_message;

/// How often the tables are polled without a notification: as often as a job may ask a site for something.
const POLL: Duration = Duration::from_millis(500);
/// Pages whose links are read at the same time.
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
            () = core.sites.notified() => {}
            _ = poll.tick() => {}
        }
        if !core.is_member() {
            continue;
        }
        tokio::select! {
            // Each transaction is complete or rolled back, and a step can be repeated.
            () = core.draining.cancelled() => break,
            () = core.stop.cancelled() => break,
            result = round(&core) => match result {
                Ok(true) => core.sites.notify(),
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
    let leased = lease_due(core).await?;
    Ok(ended || leased)
}

/// Stores the results of captures that have ended. Returns whether there may be more.
async fn finish_ended(core: &Core) -> Result<bool, Error> {
    let ended = core.store.sites().ended_pages(core.clock.now(), BATCH).await?;
    for pages in ended.chunks(FINISHED_TOGETHER) {
        try_join_all(pages.iter().map(|page| finish_one(core, *page))).await?;
    }
    Ok(has_as_many(ended.len(), BATCH))
}

async fn finish_one(core: &Core, page: SitePageId) -> Result<(), Error> {
    let found = links::find(core, page).await?;
    failpoints::reach(core, Step::PageEnded, None).await?;
    let finished = core.store.sites().finish_page(page, found, core.clock.now(), site_message).await?;
    report(core, finished.as_ref());
    Ok(())
}

/// Leases jobs that are due, and does their next step. Returns whether there may be more.
async fn lease_due(core: &Core) -> Result<bool, Error> {
    let limit = core.sites.free_turns().min(BATCH);
    if limit == 0 {
        return Ok(false);
    }
    let due = core.store.sites().due(core.clock.now(), limit).await?;
    let mut leased = 0;
    for site in &due {
        let Some(permit) = core.sites.turn_permit() else { break };
        let now = core.clock.now();
        match core.store.sites().lease(*site, now, now + LEASE, site_message).await? {
            Some(LeasedSite::Turn(turn)) => {
                failpoints::reach(core, Step::SiteLeased, None).await?;
                spawn_turn(core, *turn, permit);
            }
            Some(LeasedSite::Finished(finished)) => report(core, Some(&*finished)),
            Some(LeasedSite::Waits) => {}
            // Another process has leased it.
            None => continue,
        }
        leased += 1;
    }
    // If other processes have leased all of them, the next poll is soon enough.
    Ok(has_as_many(due.len(), limit) && leased > 0)
}

/// Does a step in a task of its own: it waits for the site, which must not delay other jobs.
fn spawn_turn(core: &Core, turn: SiteTurn, permit: OwnedSemaphorePermit) {
    let owned = core.clone();
    core.spawn(async move {
        tokio::select! {
            // The step is repeated when the lease is over.
            () = owned.stop.cancelled() => {}
            result = turn::run(&owned, &turn) => if let Err(error) = result {
                failed(&owned, &error);
            }
        }
        drop(permit);
        // A page that is skipped is followed by the next one at once.
        owned.sites.notify();
    });
}

fn failed(core: &Core, error: &Error) {
    core.metrics.sweep_failed("sites");
    tracing::warn!(%error, cause = ?error, "a step of the site jobs failed; trying again");
}

fn has_as_many(rows: usize, limit: u32) -> bool {
    u32::try_from(rows).unwrap_or(u32::MAX) >= limit
}

#[cfg(test)]
#[path = "scheduler_tests.rs"]
mod tests;
