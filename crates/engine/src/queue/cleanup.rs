//! Periodic deletion of what has expired, on request or by time: images, credits, keys, sessions, tokens, deliveries,
//! and grabs after the operator's retention.
//!
//! Everything here depends on the wall clock and cannot be undone, so nothing runs while the clock may be wrong.

use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_store::Error;

use super::clock_check::ClockCheck;
use super::erasure;
use super::expiry;
use super::retention;
use super::step::step;
use crate::core::Core;

/// Maximum number of lots expired, and of image files deleted, at a time.
const BATCH: u32 = 100;
/// Maximum number of rows of a kind purged at a time: 100 per second, since many creates may use an idempotency key.
const PURGE: u32 = 1000;
/// Maximum number of times that a batch of image files is deleted at a time.
const BATCHES: u32 = 10;

/// Time for which a refund or dispute without a lot is kept. Stripe repeats an event for three days, and an operator
/// can send it again for thirty.
const FOREIGN_REVERSALS_KEPT: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// Runs all steps once, if the clock is confirmed.
pub(super) async fn run(core: &Core, clock: &mut ClockCheck) {
    if !is_confirmed(core, clock).await {
        return;
    }
    let (store, now) = (&core.store, core.clock.now());
    step(core, "lots", async { store.expire_lots(now, BATCH).await.map(drop) }).await;
    step(core, "idempotency_keys", async { store.purge_keys(now, PURGE).await.map(drop) }).await;
    step(core, "revoked_keys", async { store.purge_revoked_keys(now, PURGE).await.map(drop) }).await;
    step(core, "sessions", async { store.purge_sessions(now, PURGE).await.map(drop) }).await;
    step(core, "challenges", async { store.purge_challenges(now, PURGE).await.map(drop) }).await;
    step(core, "links", async { store.purge_links(now, PURGE).await.map(drop) }).await;
    step(core, "devices", async { store.purge_devices(now, PURGE).await.map(drop) }).await;
    step(core, "oauth", async { store.purge_oauth(now, PURGE).await.map(drop) }).await;
    step(core, "disputes", async { store.settle_disputes(now, BATCH).await.map(drop) }).await;
    step(core, "reversals", async { store.purge_reversals(now - FOREIGN_REVERSALS_KEPT, PURGE).await.map(drop) }).await;
    let audit_kept = core.settings.operations.audit_retention;
    step(core, "audit", async { store.purge_audit(now - audit_kept, PURGE).await.map(drop) }).await;
    step(core, "deliveries", async { store.purge_deliveries(now, PURGE).await.map(drop) }).await;
    retention::run(core, now).await;
    step(core, "unverified", expiry::run(core, now)).await;
    step(core, "erasures", erasure::run(core)).await;
    step(core, "tallies", async { store.purge_tallies(now, PURGE).await.map(drop) }).await;
    step(core, "images", collect_images(core, now)).await;
    if core.cluster.is_some() {
        step(core, "nodes", async { store.purge_nodes().await.map(drop) }).await;
        step(core, "rate_cells", async { store.purge_rate_cells().await.map(drop) }).await;
    }
}

/// Asks the database for its time if the clock jumped, or was not confirmed yet.
async fn is_confirmed(core: &Core, clock: &mut ClockCheck) -> bool {
    if clock.is_confirmed() {
        return true;
    }
    match core.store.database_time().await {
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

/// Deletes files until none is due. One that cannot be deleted is set aside and delays no other.
async fn collect_images(core: &Core, now: Timestamp) -> Result<(), Error> {
    for _ in 0..BATCHES {
        let due = core.store.due_images(now, BATCH).await?;
        if due.is_empty() {
            break;
        }
        for key in due {
            match core.grabs.images.delete(&key).await {
                Ok(()) => {
                    core.grabs.thumbnails.remove(&key);
                    core.store.unschedule_deletion(&key).await?;
                }
                Err(error) => {
                    tracing::warn!(%error, "an image could not be deleted; trying again later");
                    core.store.set_image_aside(&key, now);
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
