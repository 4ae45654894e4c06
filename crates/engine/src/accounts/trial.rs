//! Trial credits: what a person gets when they verify the address of their own account.

use grabd_domain::ids::UserId;
use grabd_domain::{Fault, Timestamp};

use crate::core::Core;
use crate::faults::internal_error;

/// Grants the trial credits, if there are any and the person's address was verified at `verified_at`. At most once for
/// each person.
///
/// # Errors
/// [`Fault::InternalError`] when the database fails.
pub(super) async fn grant_trial(core: &Core, user: UserId, verified_at: Timestamp) -> Result<(), Fault> {
    let credits = core.settings.trial_credits;
    if credits == 0 {
        return Ok(());
    }
    let granted = core.store_as(user).credits().grant_trial(user, credits, verified_at).await;
    if let Some(team) = granted.map_err(internal_error("accounts.grant_trial"))? {
        tracing::info!(user.id = %user, team.id = %team, credits, "trial credits granted");
    }
    Ok(())
}
