//! Erases what deleted teams and users left behind, in batches. Every step can be repeated, so that an interrupted
//! erasure continues with the next sweep or the next start.

use grabd_store::Error;
use grabd_store::retention::Erasure;

use super::{TEAM_DELETED, end_open_grabs, record_end};
use crate::service::Core;

/// Maximum number of grabs, and of deliveries, deleted in one transaction, which must not delay others.
const ROWS: u32 = 250;
/// Maximum number of entries of the audit trail read in one transaction.
const ENTRIES: u32 = 2000;
/// Maximum number of transactions for each erasure at a time.
const BATCHES: u32 = 10;

/// Continues some erasures, and others the next time.
pub(super) async fn run(core: &Core) -> Result<(), Error> {
    let after = core.cleanup.lock().erased;
    for erasure in core.store.retention().next_erasures(after).await? {
        core.cleanup.lock().erased = Some(erasure);
        if let Err(error) = advance(core, erasure).await {
            // The others must not wait for one that fails.
            core.metrics.sweep_failed("erasure");
            tracing::warn!(?erasure, %error, "an erasure failed; trying again");
        }
    }
    Ok(())
}

async fn advance(core: &Core, erasure: Erasure) -> Result<(), Error> {
    let now = core.clock.now();
    if let Erasure::Team(team) = erasure {
        for grab in end_open_grabs(&core.store, team, TEAM_DELETED, now).await? {
            core.queue.dispatcher.cancel(grab.id);
            record_end(core, grab);
        }
        let mut is_left = true;
        for _ in 0..BATCHES {
            is_left = core.store.retention().erase_team(team, now, ROWS).await?;
            if !is_left {
                break;
            }
        }
        if is_left {
            return Ok(());
        }
    }
    for _ in 0..BATCHES {
        if !core.store.retention().erase_audit(erasure, ENTRIES).await? {
            tracing::info!(?erasure, "an erasure is complete");
            break;
        }
    }
    Ok(())
}
