//! Trial credits: what a user gets when they verify the address of their own account.

use grabd_domain::Timestamp;
use grabd_domain::ids::UserId;

use crate::error::Error;
use crate::service::Core;

/// Grants the trial credits, if there are any and the user's address was verified at `verified_at`. At most once for
/// each user.
///
/// # Errors
/// When the database fails.
pub(super) async fn grant_trial(core: &Core, user: UserId, verified_at: Timestamp) -> Result<(), Error> {
    let credits = core.settings.trial_credits;
    if credits == 0 {
        return Ok(());
    }
    let granted = core.store_as(user).credits().grant_trial(user, credits, verified_at).await;
    if let Some(team) = granted? {
        tracing::info!(user.id = %user, team.id = %team, credits, "trial credits granted");
    }
    Ok(())
}
