//! The first steps of a team, which its first page lists.

use grabd_domain::ids::{TeamId, UserId};
use grabd_store::accounts::FirstSteps;

use crate::error::Error;
use crate::service::Core;

/// What a team has used so far. `None` if the user is not a member, or hid it.
///
/// # Errors
/// Database errors only.
#[tracing::instrument(name = "accounts.find_first_steps", skip_all)]
pub async fn find_first_steps(core: &Core, team: TeamId, user: UserId) -> Result<Option<FirstSteps>, Error> {
    Ok(core.store.accounts().find_first_steps(team, user).await?)
}

/// Hides the first steps of a team from one of its members.
///
/// # Errors
/// Database errors only.
#[tracing::instrument(name = "accounts.hide_first_steps", skip_all)]
pub async fn hide_first_steps(core: &Core, team: TeamId, user: UserId) -> Result<(), Error> {
    let hidden = core.store.accounts().hide_first_steps(team, user, core.clock.now()).await;
    Ok(hidden?)
}
