//! Deletion of teams and accounts by their people and by operators.
//!
//! All access ends before these functions return. The sweep erases the rest: see `queue/erasure.rs`.

use grabd_domain::Timestamp;
use grabd_domain::credentials::SessionToken;
use grabd_domain::grabs::Grab;
use grabd_domain::ids::{TeamId, UserId};
use grabd_store::Store;
use grabd_store::accounts::TeamResult;
use grabd_store::retention::DeleteUserOutcome;

use super::change_password::{PasswordConfirmationError, confirm_password};
use super::membership::{TeamError, find_team};
use super::sessions::User;
use crate::error::{Error, internal_from};
use crate::queue::{self, TEAM_DELETED, end_open_grabs};
use crate::service::Core;

/// Why a team or an account was not deleted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeletionError {
    /// The entered name is not that of the team.
    #[error("the name is not that of the team")]
    WrongName,
    /// The password was not accepted.
    #[error(transparent)]
    Password(#[from] PasswordConfirmationError),
    /// The user may not delete the team.
    #[error(transparent)]
    Team(#[from] TeamError),
    /// Other members of these teams would be left without an owner.
    #[error("other members of {} would be left without an owner", teams.join(", "))]
    OnlyOwner {
        /// The names of the teams.
        teams: Vec<String>,
    },
    /// An internal error.
    #[error(transparent)]
    Internal(Error),
}

internal_from!(DeletionError);

/// Deletes a team on behalf of an owner, who confirms it with the name of the team and their password.
///
/// # Errors
/// See [`DeletionError`].
#[tracing::instrument(name = "accounts.delete_team", skip_all)]
pub async fn delete_team(
    core: &Core,
    user: &User,
    this: &SessionToken,
    team: TeamId,
    name: &str,
    password: &str,
) -> Result<(), DeletionError> {
    let found = find_team(core, user.id, team).await?;
    if found.name.trim() != name.trim() {
        return Err(DeletionError::WrongName);
    }
    confirm_password(core, user, this, password).await?;
    let now = core.clock.now();
    let deleted = core.store_as(user.id).retention().delete_team(team, Some(user.id), now).await;
    deleted?.map_err(TeamError::from)?;
    end_grabs(core, team).await?;
    tracing::warn!(team.id = %team, user.id = %user.id, "team deleted");
    Ok(())
}

/// Deletes the account of a user, who confirms it with their password, and the teams whose only member they are.
///
/// # Errors
/// See [`DeletionError`].
#[tracing::instrument(name = "accounts.delete_account", skip_all)]
pub async fn delete_account(
    core: &Core,
    user: &User,
    this: &SessionToken,
    password: &str,
) -> Result<(), DeletionError> {
    confirm_password(core, user, this, password).await?;
    let deleted = core.store_as(user.id).retention().delete_user(user.id, core.clock.now()).await;
    match deleted? {
        DeleteUserOutcome::Deleted { teams } => {
            for team in teams {
                end_grabs(core, team).await?;
            }
        }
        DeleteUserOutcome::OnlyOwner { teams } => return Err(DeletionError::OnlyOwner { teams }),
        // Deleted concurrently.
        DeleteUserOutcome::UnknownUser => {}
    }
    tracing::warn!(user.id = %user.id, "account deleted");
    Ok(())
}

/// Ends the open grabs of a deleted team at once, also in the renderer.
async fn end_grabs(core: &Core, team: TeamId) -> Result<(), Error> {
    let ended = end_open_grabs(&core.store, team, TEAM_DELETED, core.clock.now()).await;
    for grab in ended? {
        core.queue.dispatcher.cancel(grab.id);
        queue::record_end(core, grab);
    }
    Ok(())
}

/// Deletes a team on behalf of an operator. Returns the grabs that it ended.
///
/// # Errors
/// Store errors. The team may be deleted then; the service ends its open grabs.
pub async fn delete_team_as_operator(
    store: &Store,
    team: TeamId,
    now: Timestamp,
) -> Result<TeamResult<Vec<Grab>>, grabd_store::Error> {
    if let Err(refused) = store.retention().delete_team(team, None, now).await? {
        return Ok(Err(refused));
    }
    end_open_grabs(store, team, TEAM_DELETED, now).await.map(Ok)
}

/// Deletes an account on behalf of an operator, with the same rules as for its user.
///
/// # Errors
/// Store errors.
pub async fn delete_user_as_operator(
    store: &Store,
    user: UserId,
    now: Timestamp,
) -> Result<DeleteUserOutcome, grabd_store::Error> {
    let outcome = store.retention().delete_user(user, now).await?;
    if let DeleteUserOutcome::Deleted { teams } = &outcome {
        for team in teams {
            end_open_grabs(store, *team, TEAM_DELETED, now).await?;
        }
    }
    Ok(outcome)
}
