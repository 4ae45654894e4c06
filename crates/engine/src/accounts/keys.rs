//! API keys: made, shown once, kept as a hash.

use grabd_domain::Timestamp;
use grabd_domain::credentials::{ApiKey, Environment};
use grabd_domain::ids::{KeyId, TeamId};
use grabd_store::{NewKey, Store};
use sha2::{Digest, Sha256};

use crate::chance;

/// What is kept of a key. A fast hash is enough: the secret has 256 bits of its own.
pub fn hash(key: &ApiKey) -> [u8; 32] {
    Sha256::digest(key.expose().as_bytes()).into()
}

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
    let new =
        NewKey { id, team, environment, name: name.to_owned(), hash: hash(&key), last4: key.last4().to_owned(), now };
    store.create_key(new).await?;
    Ok((id, key))
}

fn generate(environment: Environment) -> ApiKey {
    use base64::Engine as _;
    let secret = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(chance::secret());
    ApiKey::new(environment, &secret).expect("32 bytes are 43 base64url characters")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_well_formed_and_never_repeat() {
        let (a, b) = (generate(Environment::Live), generate(Environment::Live));
        assert_eq!(a.environment(), Environment::Live);
        assert_ne!(hash(&a), hash(&b));
    }
}
