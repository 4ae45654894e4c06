//! The payer of a team, as what limits are counted by: one user may have many teams.

use grabd_domain::admission::Payer;
use grabd_domain::ids::TeamId;

use super::source::FREE_REFERENCES;
use crate::digest;
use crate::error::Error;
use crate::service::Core;

/// The payer of a team.
///
/// # Errors
/// When the database fails.
pub(crate) async fn find_payer(core: &Core, team: TeamId) -> Result<Payer, Error> {
    Ok(core.store.credits().payer(team, &FREE_REFERENCES).await?)
}

/// A name for the payer of a team, as a key of limits: 64 hexadecimal digits, from which nobody learns who the owner is.
///
/// # Errors
/// When the database fails.
#[tracing::instrument(name = "billing.account_name", skip_all)]
pub async fn payer_name(core: &Core, team: TeamId) -> Result<String, Error> {
    let payer = find_payer(core, team).await?;
    let digest = digest::of(&format!("grabd account\n{}", payer.id));
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}
