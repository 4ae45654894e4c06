//! The secrets of links: one for each API key, generated when somebody first asks for it, and stored encrypted.

use grabd_domain::Timestamp;
use grabd_domain::credentials::LinkSecret;
use grabd_domain::ids::{KeyId, TeamId, UserId};
use grabd_domain::links::LinkKey;
use grabd_domain::permissions::Permission;
use grabd_store::Store;
use grabd_store::accounts::ShownLinkSecret;

use crate::accounts::{TeamError, find_permitted_team};
use crate::clock::Clock;
use crate::error::Error;
use crate::random;
use crate::service::Core;
use crate::vault::{DecryptError, Vault};

/// What signs links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkCredentials {
    /// The public name of the API key.
    pub key: LinkKey,
    /// The secret that signs.
    pub secret: LinkSecret,
}

/// Why there is no secret.
#[derive(Debug, thiserror::Error)]
pub enum LinkSecretError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] grabd_store::Error),
    /// The stored secret cannot be decrypted.
    #[error(transparent)]
    Decrypt(#[from] DecryptError),
}

impl From<LinkSecretError> for Error {
    #[track_caller]
    fn from(error: LinkSecretError) -> Self {
        match error {
            LinkSecretError::Store(error) => error.into(),
            LinkSecretError::Decrypt(error) => error.into(),
        }
    }
}

/// The link credentials of a key, for an operator. They are generated if it has none yet. None if the team has no such key
/// that is in use. Each call is recorded in the audit trail.
///
/// # Errors
/// When the store fails, or when the vault has another key than the one that encrypted the secret.
pub async fn credentials(
    store: &Store,
    vault: &Vault,
    team: TeamId,
    key: KeyId,
) -> Result<Option<LinkCredentials>, LinkSecretError> {
    show(store, vault, (team, key), None, Clock::system().now()).await
}

async fn show(
    store: &Store,
    vault: &Vault,
    (team, key): (TeamId, KeyId),
    by: Option<UserId>,
    now: Timestamp,
) -> Result<Option<LinkCredentials>, LinkSecretError> {
    let (_, sealed) = generate(vault, key)?;
    let Some(stored) = store.accounts().set_link_secret(ShownLinkSecret { team, key, sealed, by, now }).await? else {
        return Ok(None);
    };
    Ok(Some(LinkCredentials { key: LinkKey(key), secret: unseal(vault, key, &stored)? }))
}

/// Replaces the link secret of a key, and shows the new one to a member, or without one to an operator. Links that the
/// former secret signed stop working at once. None if the team has no such key that is in use.
///
/// # Errors
/// When the store fails.
pub async fn replace_secret(
    store: &Store,
    vault: &Vault,
    (team, key): (TeamId, KeyId),
    by: Option<UserId>,
    now: Timestamp,
) -> Result<Option<LinkCredentials>, LinkSecretError> {
    let (secret, sealed) = generate(vault, key)?;
    let is_replaced = store.accounts().replace_link_secret(ShownLinkSecret { team, key, sealed, by, now }).await?;
    Ok(is_replaced.then_some(LinkCredentials { key: LinkKey(key), secret }))
}

/// A new secret for a key, and its encrypted form.
fn generate(vault: &Vault, key: KeyId) -> Result<(LinkSecret, Vec<u8>), DecryptError> {
    let generated = LinkSecret::new(&random::secret_text()).ok_or(DecryptError)?;
    let sealed = vault.seal(generated.expose().as_bytes(), key.0.as_bytes());
    Ok((generated, sealed))
}

/// Decrypts the secret of a key.
///
/// # Errors
/// [`DecryptError`] when it was encrypted with another key or for another API key.
pub(super) fn unseal(vault: &Vault, key: KeyId, sealed: &[u8]) -> Result<LinkSecret, DecryptError> {
    let text = vault.unseal(sealed, key.0.as_bytes())?;
    std::str::from_utf8(&text).ok().and_then(LinkSecret::parse).ok_or(DecryptError)
}

/// The team of a key that is in use.
///
/// # Errors
/// When the store fails.
pub async fn find_key_team(store: &Store, key: KeyId) -> Result<Option<TeamId>, grabd_store::Error> {
    Ok(store.accounts().find_link_signer(key).await?.map(|signer| signer.caller.team))
}

/// Reveals the link credentials of a key to a member of its team.
///
/// # Errors
/// [`TeamError::NotMember`] when `user` is not in the team, [`TeamError::NotAllowed`] when their role has no access to keys, and
/// [`TeamError::NotFound`] when the team has no such key that is in use.
#[tracing::instrument(name = "links.reveal", skip_all)]
pub async fn reveal(core: &Core, user: UserId, team: TeamId, key: KeyId) -> Result<LinkCredentials, TeamError> {
    find_permitted_team(core, user, team, Permission::ManageKeys).await?;
    let (store, now) = (core.store_as(user), core.clock.now());
    let found = show(&store, &core.vault, (team, key), Some(user), now).await;
    let found = found?.ok_or(TeamError::NotFound)?;
    tracing::info!(team.id = %team, key.id = %key, user.id = %user, "link secret revealed");
    Ok(found)
}

/// Replaces the link secret of a key for a member of its team, who sees the new one.
///
/// # Errors
/// As [`reveal`].
#[tracing::instrument(name = "links.replace", skip_all)]
pub async fn replace(core: &Core, user: UserId, team: TeamId, key: KeyId) -> Result<LinkCredentials, TeamError> {
    find_permitted_team(core, user, team, Permission::ManageKeys).await?;
    let (store, now) = (core.store_as(user), core.clock.now());
    let replaced = replace_secret(&store, &core.vault, (team, key), Some(user), now).await;
    let replaced = replaced?.ok_or(TeamError::NotFound)?;
    tracing::info!(team.id = %team, key.id = %key, user.id = %user, "link secret replaced");
    Ok(replaced)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn sealed_secret_opens_for_its_key_only() {
        let vault = Vault::new([7; 32]);
        let [one, other] = [1, 2].map(|id| KeyId(Uuid::from_u128(id)));
        let secret = LinkSecret::new(&random::secret_text()).unwrap();
        let sealed = vault.seal(secret.expose().as_bytes(), one.0.as_bytes());
        assert_eq!(unseal(&vault, one, &sealed), Ok(secret));
        assert_eq!(unseal(&vault, other, &sealed), Err(DecryptError));
        assert_eq!(unseal(&Vault::new([8; 32]), one, &sealed), Err(DecryptError));
    }
}
