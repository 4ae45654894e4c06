//! API keys: the text is returned once, and only its hash is stored.

use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::credentials::{ApiKey, Environment, Scopes};
use grabd_domain::ids::{KeyId, TeamId};
use grabd_store::Store;
use grabd_store::accounts::NewKey;

use crate::digest;
use crate::random;

/// What a new key is restricted to. By default nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyLimits {
    /// What it may be used for.
    pub scopes: Scopes,
    /// How long it works; `None`: until it is revoked.
    pub life: Option<Duration>,
}

impl Default for KeyLimits {
    fn default() -> Self {
        Self { scopes: Scopes::ALL, life: None }
    }
}

/// Creates a key for a team and stores its hash. The text is only in the return value. The key has all scopes and does
/// not expire.
///
/// # Errors
/// Store errors.
pub async fn issue_key(
    store: &Store,
    team: TeamId,
    environment: Environment,
    name: &str,
    now: Timestamp,
) -> Result<(KeyId, ApiKey), grabd_store::Error> {
    issue_restricted_key(store, team, environment, name, KeyLimits::default(), now).await
}

/// The same for a restricted key.
///
/// # Errors
/// Store errors.
pub async fn issue_restricted_key(
    store: &Store,
    team: TeamId,
    environment: Environment,
    name: &str,
    limits: KeyLimits,
    now: Timestamp,
) -> Result<(KeyId, ApiKey), grabd_store::Error> {
    let key = generate(environment);
    let id = random::key_id(now);
    let (name, hash, last4) = (name.to_owned(), digest::of(key.expose()), key.last4().to_owned());
    let KeyLimits { scopes, life } = limits;
    let expires_at = life.map(|life| now + life);
    let new = NewKey { id, team, environment, name, hash, last4, scopes, expires_at, created_by: None, now };
    store.accounts().create_key(new).await?;
    Ok((id, key))
}

pub(super) fn generate(environment: Environment) -> ApiKey {
    ApiKey::new(environment, &random::secret_text()).expect("32 bytes are 43 base64url characters")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_keys_are_well_formed_and_unique() {
        let (a, b) = (generate(Environment::Live), generate(Environment::Live));
        assert_eq!(a.environment(), Environment::Live);
        assert_ne!(a.expose(), b.expose());
    }
}
