//! Deletes accounts that were never verified and never used: see `Retention::expire_unverified` of the store for the rule.
//!
//! Without a mail server every account counts as verified, so none expires.

use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_store::Error;

use crate::service::Core;

/// Accounts that are examined at a time.
const EXAMINED: u32 = 50;
/// Erasures that may wait, so that the deletion of accounts and teams by their users is not delayed.
const ERASURES: usize = 6;
/// Each deletion begins two erasures: that of the user, and that of their team.
const ERASURES_EACH: usize = 2;
/// Time between two rounds over all unverified accounts.
const INTERVAL: Duration = Duration::from_secs(60 * 60);

/// Deletes some accounts.
pub(super) async fn run(core: &Core, now: Timestamp) -> Result<(), Error> {
    let Some(kept) = core.settings.retention.unverified.filter(|_| core.sends_mail()) else { return Ok(()) };
    let after = {
        let progress = core.cleanup.lock();
        if progress.unverified_at.is_some_and(|at| at > now && at <= now + INTERVAL) {
            return Ok(());
        }
        progress.unverified
    };
    let room = ERASURES.saturating_sub(core.store.retention().list_erasures().await?.len()) / ERASURES_EACH;
    if room == 0 {
        return Ok(());
    }
    let done = core.store.retention().expire_unverified(now - kept, after, now, EXAMINED, room).await?;
    for (user, teams) in &done.expired {
        tracing::warn!(user.id = %user, teams = teams.len(), "an account expired: never verified, and not used");
    }
    let mut progress = core.cleanup.lock();
    progress.unverified = done.next;
    progress.unverified_at = done.next.is_none().then(|| now + INTERVAL);
    Ok(())
}
