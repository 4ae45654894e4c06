//! The account of a team, as what limits are counted by: one person may have many teams.

use grabd_domain::admission::Account;
use grabd_domain::ids::TeamId;

use super::source::FREE_REFERENCES;
use crate::core::Core;
use crate::digest;
use crate::error::Error;

/// The account of a team.
///
/// # Errors
/// When the database fails.
pub(crate) async fn find_account(core: &Core, team: TeamId) -> Result<Account, Error> {
    Ok(core.store.credits().account(team, &FREE_REFERENCES).await?)
}

/// A name for the account of a team, as a key of limits: 64 hexadecimal digits, from which nobody learns who the owner is.
///
/// # Errors
/// When the database fails.
#[tracing::instrument(name = "billing.account_name", skip_all)]
pub async fn account_name(core: &Core, team: TeamId) -> Result<String, Error> {
    let account = find_account(core, team).await?;
    let digest = digest::of(&format!("grabd account\n{}", account.id));
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}
