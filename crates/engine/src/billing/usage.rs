//! Usage of a team.

use grabd_domain::Fault;
use grabd_domain::credentials::Caller;
use grabd_domain::credits::{Balance, Plan};
use grabd_domain::limits::USAGE_WINDOW;
use grabd_store::GrabCounts;

use crate::core::{Core, internal_error};

/// Balance, plan and counts of a team.
pub(crate) struct Usage {
    pub(crate) balance: Balance,
    pub(crate) plan: Plan,
    pub(crate) counts: GrabCounts,
}

/// Reads the usage of the caller's team. It covers both environments.
pub(crate) async fn get(core: &Core, caller: Caller) -> Result<Usage, Fault> {
    let now = core.clock.now();
    let lots = core.store.lots(caller.team).await.map_err(internal_error("usage.lots"))?;
    let counts =
        core.store.count_grabs(caller.team, now - USAGE_WINDOW).await.map_err(internal_error("usage.counts"))?;
    Ok(Usage { balance: Balance::of(&lots, now), plan: Plan::of(&lots, now), counts })
}
