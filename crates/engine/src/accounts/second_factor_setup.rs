//! The secret of a second factor before it is turned on.
//!
//! Nothing is stored: the form that shows the secret carries it, sealed for the user, until a code confirms it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use grabd_domain::Timestamp;
use grabd_domain::accounts::SECOND_FACTOR_SETUP_LIFE;
use grabd_domain::ids::UserId;

use super::sessions::User;
use super::totp::{self, SECRET_BYTES};
use crate::random;
use crate::service::Core;
use crate::vault::Vault;

/// What the token is sealed for, with the user.
const PURPOSE: &[u8] = b"second factor set-up";
/// Length of the sealed content: expiry and secret.
const CONTENT_BYTES: usize = 8 + SECRET_BYTES;
/// Maximum length of a token in characters.
const MAX_CHARS: usize = 200;

/// What a user needs to set up an authenticator app.
#[derive(Clone, PartialEq, Eq)]
pub struct SecondFactorSetup {
    /// The secret in base32, for typing.
    pub secret: String,
    /// The URI for a QR code.
    pub uri: String,
    /// The sealed secret, for the form. Valid for [`SECOND_FACTOR_SETUP_LIFE`].
    pub token: String,
}

/// Generates a secret.
pub fn new_second_factor_setup(core: &Core, user: &User) -> SecondFactorSetup {
    let mut secret = [0; SECRET_BYTES];
    secret.copy_from_slice(&random::secret()[..SECRET_BYTES]);
    let token = seal(&core.vault, user.id, &secret, core.clock.now() + SECOND_FACTOR_SETUP_LIFE);
    describe(core, user, &secret, token)
}

/// The set-up of a form that was submitted; `None` when it has expired or is for somebody else.
pub fn find_second_factor_setup(core: &Core, user: &User, token: &str) -> Option<SecondFactorSetup> {
    let secret = open(&core.vault, user.id, token, core.clock.now())?;
    Some(describe(core, user, &secret, token.to_owned()))
}

fn describe(core: &Core, user: &User, secret: &[u8], token: String) -> SecondFactorSetup {
    let uri = totp::uri(secret, &issuer(&core.host()), user.email.as_str());
    SecondFactorSetup { secret: totp::secret_text(secret), uri, token }
}

/// The name in the authenticator app. A colon would end it, so there is no port, and no address of IPv6.
fn issuer(host: &str) -> String {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    if name.contains(':') { "grabd".to_owned() } else { format!("grabd {name}") }
}

fn seal(vault: &Vault, user: UserId, secret: &[u8; SECRET_BYTES], expires_at: Timestamp) -> String {
    let content = [&expires_at.as_ms().to_be_bytes()[..], secret].concat();
    URL_SAFE_NO_PAD.encode(vault.seal(&content, &owner(user)))
}

/// The secret in a token.
pub(super) fn open(vault: &Vault, user: UserId, token: &str, now: Timestamp) -> Option<[u8; SECRET_BYTES]> {
    if token.len() > MAX_CHARS {
        return None;
    }
    let sealed = URL_SAFE_NO_PAD.decode(token).ok()?;
    let content: [u8; CONTENT_BYTES] = vault.unseal(&sealed, &owner(user)).ok()?.try_into().ok()?;
    let (expires_at, secret) = content.split_first_chunk::<8>()?;
    let is_valid = Timestamp::from_ms(i64::from_be_bytes(*expires_at)) > now;
    if is_valid { secret.try_into().ok() } else { None }
}

fn owner(user: UserId) -> Vec<u8> {
    [PURPOSE, user.0.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn token_is_valid_for_its_user_and_its_life() {
        let (vault, now) = (Vault::new([7; 32]), Timestamp::from_ms(1_800_000_000_000));
        let [ada, eve] = [1, 2].map(|id| UserId(Uuid::from_u128(id)));
        let token = seal(&vault, ada, &[5; SECRET_BYTES], now);
        let before = Timestamp::from_ms(now.as_ms() - 1);
        assert!(token.len() <= MAX_CHARS);
        assert_eq!(open(&vault, ada, &token, before), Some([5; SECRET_BYTES]));
        assert_eq!(open(&vault, ada, &token, now), None);
        assert_eq!(open(&vault, eve, &token, before), None);
        assert_eq!(open(&vault, ada, &"A".repeat(MAX_CHARS + 1), before), None);
        // A stored secret is not a set-up.
        let stored = URL_SAFE_NO_PAD.encode(vault.seal(&[0; CONTENT_BYTES], ada.0.as_bytes()));
        assert_eq!(open(&vault, ada, &stored, before), None);
    }

    #[test]
    fn issuer_has_no_colon() {
        for (host, expected) in [
            ("shots.example.com", "grabd shots.example.com"),
            ("127.0.0.1:8080", "grabd 127.0.0.1"),
            ("[::1]:8080", "grabd"),
            ("[2001:db8::1]", "grabd"),
        ] {
            assert_eq!(issuer(host), expected);
        }
    }
}
