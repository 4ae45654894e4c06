//! API keys: made, shown once, kept as a hash.

use grabd_domain::Timestamp;
use grabd_domain::credentials::{ApiKey, Environment};
use grabd_domain::ids::{KeyId, TeamId};
use grabd_store::{NewKey, Store};

use crate::chance;
use crate::digest;

/// Makes a key for a team and stores its hash. The text is in the answer and nowhere else.
///
/// # Errors
/// What the store says.
pub async fn issue_key(
    store: &Store,
    team: TeamId,
    environment: Environment,
    name: &str,
    now: Timestamp,
) -> Result<(KeyId, ApiKey), grabd_store::Error> {
    let key = generate(environment);
    let id = chance::key_id(now);
    let (name, hash, last4) = (name.to_owned(), digest::of(key.expose()), key.last4().to_owned());
    let new = NewKey { id, team, environment, name, hash, last4, now };
    store.create_key(new).await?;
    Ok((id, key))
}

pub(super) fn generate(environment: Environment) -> ApiKey {
    ApiKey::new(environment, &chance::secret_text()).expect("32 bytes are 43 base64url characters")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_well_formed_and_never_repeat() {
        let (a, b) = (generate(Environment::Live), generate(Environment::Live));
        assert_eq!(a.environment(), Environment::Live);
        assert_ne!(a.expose(), b.expose());
    }
}
