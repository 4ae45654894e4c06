//! The first steps of a team, which its first page lists.

use grabd_domain::Fault;
use grabd_domain::ids::{TeamId, UserId};
use grabd_store::accounts::FirstSteps;

use crate::core::Core;
use crate::faults::internal_error;

/// What a team has used so far. `None` if the person is not a member, or hid it.
///
/// # Errors
/// Database errors only.
pub async fn find_first_steps(core: &Core, team: TeamId, user: UserId) -> Result<Option<FirstSteps>, Fault> {
    core.store.accounts().find_first_steps(team, user).await.map_err(internal_error("accounts.find_first_steps"))
}

/// Hides the first steps of a team from one of its members.
///
/// # Errors
/// Database errors only.
pub async fn hide_first_steps(core: &Core, team: TeamId, user: UserId) -> Result<(), Fault> {
    let hidden = core.store.accounts().hide_first_steps(team, user, core.clock.now()).await;
    hidden.map_err(internal_error("accounts.hide_first_steps"))
}
