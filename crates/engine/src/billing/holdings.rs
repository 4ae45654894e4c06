//! The balance of a team, in total and by lot.

use grabd_domain::Timestamp;
use grabd_domain::credits::Balance;
use grabd_domain::ids::TeamId;
pub use grabd_store::credits::Holding;

use super::stripe;
use crate::error::Error;
use crate::service::Core;

/// Maximum number of lots returned. A team has one lot for each purchase that is not used up.
pub const MAX_HOLDINGS: u32 = 200;

/// The credits that a team can spend now.
///
/// # Errors
/// When the database cannot be read.
#[tracing::instrument(name = "billing.balance", skip_all)]
pub async fn balance(core: &Core, team: TeamId) -> Result<Balance, Error> {
    let lots = core.store.credits().lots(team).await?;
    Ok(Balance::of(&lots, core.clock.now()))
}

/// The remaining credits of each lot of a team with their source, in spending order.
///
/// An expired lot is no longer spent, but is listed until the ledger has an entry for its expiry.
///
/// # Errors
/// When the database cannot be read.
#[tracing::instrument(name = "billing.holdings", skip_all)]
pub async fn holdings(core: &Core, team: TeamId) -> Result<Vec<Holding>, Error> {
    Ok(core.store.credits().holdings(team, MAX_HOLDINGS).await?)
}

/// The lots that a team bought and that were granted at `since` or later, with their remaining credits.
///
/// # Errors
/// When the database cannot be read.
#[tracing::instrument(name = "billing.purchases_since", skip_all)]
pub async fn purchases_since(core: &Core, team: TeamId, since: Timestamp) -> Result<Vec<Holding>, Error> {
    let mut holdings = holdings(core, team).await?;
    holdings.retain(|holding| holding.granted_at >= since && stripe::is_payment(&holding.source_ref));
    Ok(holdings)
}
