//! Tokens that contain the state of a challenge, encrypted and with an expiry, so that nothing is stored for visitors.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use grabd_domain::Timestamp;
use grabd_domain::accounts::CHALLENGE_LIFE;
use grabd_store::accounts::Challenge;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::vault::Vault;

/// Maximum length of a token in characters: ten ids of passkeys with the greatest length fit.
const MAX_CHARS: usize = 32 * 1024;

/// Seals the state of a challenge that is valid for [`CHALLENGE_LIFE`]. `None` if it cannot be serialized.
pub(super) fn seal<T: Serialize>(vault: &Vault, owner: &[u8], state: &T, now: Timestamp) -> Option<String> {
    let state = serde_json::to_vec(state).ok()?;
    let content = [&(now + CHALLENGE_LIFE).as_ms().to_be_bytes()[..], &state].concat();
    Some(URL_SAFE_NO_PAD.encode(vault.seal(&content, owner)))
}

/// The state in a token, and the challenge to answer. `None` when it has expired, or was sealed for another owner.
pub(super) fn open<T>(vault: &Vault, owner: &[u8], token: &str, now: Timestamp) -> Option<(T, Challenge)>
where
    T: DeserializeOwned,
{
    if token.len() > MAX_CHARS {
        return None;
    }
    let content = vault.unseal(&URL_SAFE_NO_PAD.decode(token).ok()?, owner).ok()?;
    let (expires_at, state) = content.split_first_chunk::<8>()?;
    let expires_at = Timestamp::from_ms(i64::from_be_bytes(*expires_at));
    if expires_at <= now {
        return None;
    }
    // The state contains random bytes, so its hash identifies it.
    let challenge = Challenge { hash: Sha256::digest(&content).into(), expires_at };
    Some((serde_json::from_slice(state).ok()?, challenge))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn token_is_valid_for_its_owner_and_its_life() {
        let (vault, now) = (Vault::new([7; 32]), Timestamp::from_ms(1_800_000_000_000));
        let token = seal(&vault, b"ada", &"state", now).unwrap();
        let last = now + CHALLENGE_LIFE - Duration::from_millis(1);
        let (state, challenge) = open::<String>(&vault, b"ada", &token, last).unwrap();
        assert_eq!((state.as_str(), challenge.expires_at), ("state", now + CHALLENGE_LIFE));
        assert_eq!(open::<String>(&vault, b"ada", &token, now).unwrap().1, challenge);
        assert_ne!(
            open::<String>(&vault, b"ada", &seal(&vault, b"ada", &"other", now).unwrap(), now).unwrap().1,
            challenge
        );
        assert!(open::<String>(&vault, b"ada", &token, now + CHALLENGE_LIFE).is_none());
        assert!(open::<String>(&vault, b"eve", &token, now).is_none());
        assert!(open::<u32>(&vault, b"ada", &token, now).is_none());
        assert!(open::<String>(&vault, b"ada", &"A".repeat(MAX_CHARS + 1), now).is_none());
    }
}
