//! Limits of a team that an operator overrides.

use grabd_domain::ids::TeamId;
use grabd_domain::team_limits::LimitChange;
use grabd_store::limits::ChangeLimitsOutcome;

use super::Operator;
use crate::error::Error;
use crate::service::Core;

/// Overrides limits of a team, or removes their overrides. In effect at once, in this process.
///
/// # Errors
/// When the database cannot be written.
#[tracing::instrument(name = "operator.change_limits", skip_all)]
pub async fn change_limits(
    core: &Core,
    operator: &Operator,
    team: TeamId,
    changes: Vec<LimitChange>,
) -> Result<ChangeLimitsOutcome, Error> {
    let Operator(user) = operator;
    let described = changes.iter().map(LimitChange::to_string).collect::<Vec<_>>().join(" ");
    let changed = core.store_as(user.id).limits().change_team_limits(team, changes, core.clock.now()).await;
    let outcome = changed?;
    if outcome == ChangeLimitsOutcome::Changed {
        core.limits.refresh(&core.store).await?;
        core.accounts.forget_former_limits(&core.limits);
        tracing::warn!(operator.id = %user.id, team.id = %team, changes = described, "an operator changed limits");
    }
    Ok(outcome)
}
