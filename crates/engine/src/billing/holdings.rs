//! The balance, lot by lot.

use grabd_domain::Fault;
use grabd_domain::ids::TeamId;
use grabd_store::Holding;

use crate::core::{Core, inside};

/// Lots that are shown at most. A team has one for each purchase that is not used up.
pub const MAX_HOLDINGS: u32 = 200;

/// What a team has left in each of its lots, in the order they are spent, with where each came from.
///
/// A lot whose `expires_at` has come is no longer spent, and is here until its rest has lapsed in the ledger.
///
/// # Errors
/// [`Fault::InternalError`] when the database cannot be read.
pub async fn holdings(core: &Core, team: TeamId) -> Result<Vec<Holding>, Fault> {
    core.store.holdings(team, MAX_HOLDINGS).await.map_err(inside("billing.holdings"))
}
