//! The balance of a team, in total and by lot.

use grabd_domain::credits::Balance;
use grabd_domain::ids::TeamId;
use grabd_domain::{Fault, Timestamp};
pub use grabd_store::credits::Holding;

use super::stripe;
use crate::core::Core;
use crate::faults::internal_error;

/// Maximum number of lots returned. A team has one lot for each purchase that is not used up.
pub const MAX_HOLDINGS: u32 = 200;

/// The credits that a team can spend now.
///
/// # Errors
/// [`Fault::InternalError`] when the database cannot be read.
pub async fn balance(core: &Core, team: TeamId) -> Result<Balance, Fault> {
    let lots = core.store.credits().lots(team).await.map_err(internal_error("billing.balance"))?;
    Ok(Balance::of(&lots, core.clock.now()))
}

/// The remaining credits of each lot of a team with their source, in spending order.
///
/// An expired lot is no longer spent, but is listed until the ledger has an entry for its expiry.
///
/// # Errors
/// [`Fault::InternalError`] when the database cannot be read.
pub async fn holdings(core: &Core, team: TeamId) -> Result<Vec<Holding>, Fault> {
    core.store.credits().holdings(team, MAX_HOLDINGS).await.map_err(internal_error("billing.holdings"))
}

/// The lots that a team bought and that were granted at `since` or later, with their remaining credits.
///
/// # Errors
/// [`Fault::InternalError`] when the database cannot be read.
pub async fn purchases_since(core: &Core, team: TeamId, since: Timestamp) -> Result<Vec<Holding>, Fault> {
    let mut holdings = holdings(core, team).await?;
    holdings.retain(|holding| holding.granted_at >= since && stripe::is_payment(&holding.source_ref));
    Ok(holdings)
}
