//! Suspension of teams by an operator.

use grabd_domain::ids::TeamId;
use grabd_store::accounts::SuspendOutcome;

use super::Operator;
use crate::accounts;
use crate::error::Error;
use crate::queue;
use crate::service::Core;

/// Suspends a team, and ends its open grabs uncharged. Returns the number of grabs; `None` when the team does not
/// exist. `reason` is one that [`accounts::suspension_reason`] returned.
///
/// # Errors
/// When the database cannot be written.
#[tracing::instrument(name = "operator.suspend", skip_all)]
pub async fn suspend(core: &Core, operator: &Operator, team: TeamId, reason: &str) -> Result<Option<usize>, Error> {
    let Operator(user) = operator;
    let store = core.store_as(user.id);
    let suspended = accounts::suspend_team(&store, team, reason, core.clock.now()).await;
    let (outcome, ended) = suspended?;
    if outcome == SuspendOutcome::UnknownTeam {
        return Ok(None);
    }
    let count = ended.len();
    for grab in ended {
        core.queue.dispatcher.cancel(grab.id);
        queue::record_end(core, grab);
    }
    tracing::warn!(operator.id = %user.id, team.id = %team, reason, ended = count, "an operator suspended a team");
    Ok(Some(count))
}

/// Restores a suspended team. `false` when the team does not exist.
///
/// # Errors
/// When the database cannot be written.
#[tracing::instrument(name = "operator.restore", skip_all)]
pub async fn restore(core: &Core, operator: &Operator, team: TeamId) -> Result<bool, Error> {
    let Operator(user) = operator;
    let restored = core.store_as(user.id).accounts().restore_team(team, core.clock.now()).await;
    let outcome = restored?;
    tracing::warn!(operator.id = %user.id, team.id = %team, ?outcome, "an operator restored a team");
    Ok(outcome != SuspendOutcome::UnknownTeam)
}
