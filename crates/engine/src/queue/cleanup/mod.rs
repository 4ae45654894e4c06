//! Periodic deletion of what has expired, on request or by time: images, credits, keys, sessions, tokens, deliveries, API requests,
//! long options of ended grabs, and grabs after the operator's retention. Balances that have become low, by expiry or otherwise, are reported.
//!
//! Everything here depends on the wall clock and cannot be undone, so nothing runs while the clock may be wrong.
//!
//! It has a loop of its own, since it may take longer than leases and deadlines can wait for the next sweep.

use std::time::{Duration, Instant};

use grabd_domain::Timestamp;
use grabd_store::Error;
use tokio::time::MissedTickBehavior;

use super::clock_check::ClockCheck;
use super::erasure;
use super::expiry;
use super::retention;
use super::shorten;
use super::step::step;
use crate::billing::low_balance;
use crate::service::Core;

const INTERVAL: Duration = Duration::from_secs(10);
/// Maximum number of lots expired, and of image files deleted, at a time.
const BATCH: u32 = 100;
/// Maximum number of rows purged in one transaction, which must not delay others.
const PURGE: u32 = 1000;
/// Time after which the other kinds of rows have their turn. Until then batches follow each other while there is more to
/// delete, so that no table grows faster than its rows are deleted.
const TIME: Duration = Duration::from_secs(3);

/// How long a site job that has ended is kept.
const SITES_KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Site jobs that are deleted in one transaction, each with up to 1,500 pages.
const SITES_PURGED: u32 = 20;

/// Time for which a refund, a dispute or a receipt without a lot is kept. Stripe repeats an event for three days, and an operator
/// can send it again for thirty.
const FOREIGN_REVERSALS_KEPT: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// Runs until the core stops.
pub(crate) async fn run(core: Core) {
    let mut tick = tokio::time::interval(INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut clock = ClockCheck::new(core.clock.now(), Instant::now());
    // The first tick is immediate, and the start has other work to do.
    tick.tick().await;
    loop {
        tokio::select! {
            () = core.stop.cancelled() => break,
            _ = tick.tick() => {}
        }
        if clock.is_trusted(core.clock.now(), Instant::now()) && core.cleans_up() {
            tokio::select! {
                // Each transaction is complete or rolled back.
                () = core.stop.cancelled() => break,
                () = clean_up(&core, &mut clock) => {}
            }
        }
    }
}

/// Runs all steps once, if the clock is confirmed.
async fn clean_up(core: &Core, clock: &mut ClockCheck) {
    if !is_confirmed(core, clock).await {
        return;
    }
    let (store, now) = (&core.store, core.clock.now());
    step(core, "lots", async { store.credits().expire_lots(now, BATCH).await.map(drop) }).await;
    step(core, "balances", low_balance::check(core)).await;
    step(core, "idempotency_keys", purge(TIME, || store.grabs().purge_keys(now, PURGE))).await;
    step(core, "revoked_keys", purge(TIME, || store.retention().purge_revoked_keys(now, PURGE))).await;
    step(core, "sessions", purge(TIME, || store.accounts().purge_sessions(now, PURGE))).await;
    step(core, "challenges", purge(TIME, || store.accounts().purge_challenges(now, PURGE))).await;
    step(core, "links", purge(TIME, || store.accounts().purge_email_tokens(now, PURGE))).await;
    step(core, "devices", purge(TIME, || store.accounts().purge_devices(now, PURGE))).await;
    step(core, "oauth", purge(TIME, || store.oauth().purge_oauth(now, PURGE))).await;
    step(core, "disputes", async { store.credits().settle_disputes(now, BATCH).await.map(drop) }).await;
    let reversals_kept = now - FOREIGN_REVERSALS_KEPT;
    step(core, "reversals", purge(TIME, || store.credits().purge_reversals(reversals_kept, PURGE))).await;
    step(core, "receipts", purge(TIME, || store.credits().purge_receipts(reversals_kept, PURGE))).await;
    let audit_kept = now - core.settings.operations.audit_retention;
    step(core, "audit", purge(TIME, || store.audit().purge_audit(audit_kept, PURGE))).await;
    step(core, "deliveries", purge(TIME, || store.webhooks().purge_deliveries(now, PURGE))).await;
    retention::run(core, now, TIME).await;
    step(core, "requests", shorten::run(core, now)).await;
    step(core, "api_requests", purge(TIME, || store.requests().purge_requests(now, PURGE))).await;
    step(core, "unverified", expiry::run(core, now)).await;
    step(core, "erasures", erasure::run(core)).await;
    let sites_kept = now - SITES_KEPT;
    step(core, "sites", async { store.retention().purge_sites(sites_kept, SITES_PURGED).await.map(drop) }).await;
    step(core, "tallies", purge(TIME, || store.retention().purge_tallies(now, PURGE))).await;
    step(core, "identity_keys", async { store.identity().purge_keys(now).await.map(drop) }).await;
    step(core, "images", collect_images(core, now)).await;
    if core.cluster.is_some() {
        step(core, "nodes", async { store.nodes().purge_nodes().await.map(drop) }).await;
        step(core, "rate_cells", async { store.limits().purge_rate_cells().await.map(drop) }).await;
    }
}

/// Purges batches of at most [`PURGE`] rows until none is left or the time is over, but at least one.
async fn purge<F>(time: Duration, batch: impl Fn() -> F) -> Result<(), Error>
where
    F: Future<Output = Result<u64, Error>>,
{
    let began = Instant::now();
    while batch().await? >= u64::from(PURGE) && began.elapsed() < time {}
    Ok(())
}

/// Asks the database for its time if the clock jumped, or was not confirmed yet.
async fn is_confirmed(core: &Core, clock: &mut ClockCheck) -> bool {
    if clock.is_confirmed() {
        return true;
    }
    match core.store.retention().database_time().await {
        Ok(database) if clock.confirm(database) => true,
        Ok(database) => {
            core.metrics.sweep_failed("clock");
            tracing::error!(
                now = %core.clock.now(),
                %database,
                "this machine's clock differs from the database's; nothing is expired or purged until they agree"
            );
            false
        }
        Err(error) => {
            core.metrics.sweep_failed("clock");
            tracing::warn!(%error, "the clock could not be confirmed; nothing is expired or purged");
            false
        }
    }
}

/// Deletes files until none is due or the time is over. One that cannot be deleted is set aside and delays no other.
async fn collect_images(core: &Core, now: Timestamp) -> Result<(), Error> {
    let began = Instant::now();
    while began.elapsed() < TIME {
        let due = core.store.grabs().due_images(now, BATCH).await?;
        if due.is_empty() {
            break;
        }
        for key in due {
            match core.grabs.images.delete(&key).await {
                Ok(()) => {
                    core.grabs.thumbnails.remove(&key);
                    core.store.grabs().unschedule_deletion(&key).await?;
                }
                Err(error) => {
                    tracing::warn!(%error, "an image could not be deleted; trying again later");
                    core.store.grabs().set_image_aside(&key, now);
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
