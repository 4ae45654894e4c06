//! Usage of a team.

use grabd_domain::credentials::Caller;
use grabd_domain::credits::{Balance, Plan};
use grabd_domain::limits::USAGE_WINDOW;
use grabd_store::grabs::GrabCounts;

use crate::error::Error;
use crate::service::Core;

/// Balance, plan and counts of a team.
pub struct Usage {
    /// The credits.
    pub balance: Balance,
    /// The subscription.
    pub plan: Plan,
    /// Grabs of the last 30 days.
    pub counts: GrabCounts,
}

/// Reads the usage of the caller's team. It covers both environments.
///
/// # Errors
/// When the database fails.
#[tracing::instrument(name = "usage.get", skip_all)]
pub async fn get(core: &Core, caller: Caller) -> Result<Usage, Error> {
    let now = core.clock.now();
    let lots = core.store.credits().lots(caller.team).await?;
    let counts = core.store.grabs().count_grabs(caller.team, now - USAGE_WINDOW).await?;
    Ok(Usage { balance: Balance::of(&lots, now), plan: Plan::of(&lots, now), counts })
}
