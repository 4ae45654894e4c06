//! The balance, as a whole and lot by lot.

use grabd_domain::credits::Balance;
use grabd_domain::ids::TeamId;
use grabd_domain::{Fault, Timestamp};
pub use grabd_store::Holding;

use super::stripe;
use crate::core::{Core, inside};

/// Lots that are shown at most. A team has one for each purchase that is not used up.
pub const MAX_HOLDINGS: u32 = 200;

/// What a team can spend now.
///
/// # Errors
/// [`Fault::InternalError`] when the database cannot be read.
pub async fn balance(core: &Core, team: TeamId) -> Result<Balance, Fault> {
    let lots = core.store.lots(team).await.map_err(inside("billing.balance"))?;
    Ok(Balance::of(&lots, core.clock.now()))
}

/// What a team has left in each of its lots, in the order they are spent, with where each came from.
///
/// A lot whose `expires_at` has come is no longer spent, and is here until its rest has lapsed in the ledger.
///
/// # Errors
/// [`Fault::InternalError`] when the database cannot be read.
pub async fn holdings(core: &Core, team: TeamId) -> Result<Vec<Holding>, Fault> {
    core.store.holdings(team, MAX_HOLDINGS).await.map_err(inside("billing.holdings"))
}

/// What a team has left of the lots that were bought, and granted at `since` or later.
///
/// # Errors
/// [`Fault::InternalError`] when the database cannot be read.
pub async fn purchases_since(core: &Core, team: TeamId, since: Timestamp) -> Result<Vec<Holding>, Fault> {
    let mut holdings = holdings(core, team).await?;
    holdings.retain(|holding| holding.granted_at >= since && stripe::is_payment(&holding.source_ref));
    Ok(holdings)
}
