//! Sign-ins between the password and the code of the second factor.
//!
//! Nothing is stored: the browser has a sealed token that names the user and the password that was proved. It opens
//! nothing but the page that asks for the code. It is void when the password is changed.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use grabd_domain::Timestamp;
use grabd_domain::accounts::SIGN_IN_LIFE;
use grabd_domain::credentials::SessionToken;
use grabd_domain::ids::UserId;
use uuid::Uuid;

use super::sessions::open_session;
use crate::digest;
use crate::error::Error;
use crate::service::Core;
use crate::vault::Vault;

/// What the token is sealed for, so that nothing else that is sealed can be used as one.
const PURPOSE: &[u8] = b"pending sign-in";
/// Length of the sealed content: user, expiry and digest.
const CONTENT_BYTES: usize = 16 + 8 + 32;
/// Maximum length of a token in characters.
const MAX_CHARS: usize = 200;

/// What follows a proof of identity, such as a password or a link from a mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignInOutcome {
    /// A session was opened.
    SignedIn(SessionToken),
    /// The account has a second factor: a code is needed.
    CodeNeeded(PendingSignIn),
}

/// The token of a sign-in that lacks the code of the second factor. Valid for [`SIGN_IN_LIFE`].
#[derive(Clone, PartialEq, Eq)]
pub struct PendingSignIn(String);

/// What a token says.
pub(super) struct Proof {
    /// The user.
    pub(super) user: UserId,
    /// Digest of the stored password hash that was proved.
    password: [u8; 32],
}

impl SignInOutcome {
    /// The session, if one was opened.
    pub fn into_session(self) -> Option<SessionToken> {
        match self {
            Self::SignedIn(session) => Some(session),
            Self::CodeNeeded(_) => None,
        }
    }
}

impl PendingSignIn {
    /// The token in a cookie, if it has the form of one.
    pub fn parse(text: &str) -> Option<Self> {
        let is_token = text.len() <= MAX_CHARS && !text.is_empty() && text.bytes().all(is_base64url);
        is_token.then(|| Self(text.to_owned()))
    }

    /// The token for the browser's cookie.
    pub fn expose(&self) -> &str {
        &self.0
    }

    fn new(vault: &Vault, user: UserId, password_hash: &str, now: Timestamp) -> Self {
        let expires_at = now + SIGN_IN_LIFE;
        let content = [user.0.as_bytes(), &expires_at.as_ms().to_be_bytes()[..], &digest::of(password_hash)].concat();
        Self(URL_SAFE_NO_PAD.encode(vault.seal(&content, PURPOSE)))
    }

    /// What the token says; `None` when it has expired or is not one.
    pub(super) fn open(&self, vault: &Vault, now: Timestamp) -> Option<Proof> {
        let sealed = URL_SAFE_NO_PAD.decode(&self.0).ok()?;
        let content: [u8; CONTENT_BYTES] = vault.unseal(&sealed, PURPOSE).ok()?.try_into().ok()?;
        let (user, rest) = content.split_first_chunk::<16>()?;
        let (expires_at, password) = rest.split_first_chunk::<8>()?;
        let is_valid = Timestamp::from_ms(i64::from_be_bytes(*expires_at)) > now;
        is_valid.then_some(Proof { user: UserId(Uuid::from_bytes(*user)), password: password.try_into().ok()? })
    }
}

impl Proof {
    /// Whether this stored password hash is the one that was proved.
    pub(super) fn is_for(&self, password_hash: &str) -> bool {
        digest::of(password_hash) == self.password
    }
}

impl fmt::Debug for PendingSignIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PendingSignIn(…)")
    }
}

const fn is_base64url(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

/// Opens a session for a user whose identity was proved, or asks for the code of their second factor.
pub(super) async fn continue_sign_in(core: &Core, user: UserId, password_hash: &str) -> Result<SignInOutcome, Error> {
    if let Some(session) = open_session(core, user).await? {
        return Ok(SignInOutcome::SignedIn(session));
    }
    let now = core.clock.now();
    Ok(SignInOutcome::CodeNeeded(PendingSignIn::new(&core.vault, user, password_hash, now)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);

    #[test]
    fn token_is_valid_for_its_life_its_vault_and_its_password() {
        let (vault, user) = (Vault::new([7; 32]), UserId(Uuid::from_u128(5)));
        let pending = PendingSignIn::new(&vault, user, "$hash$", NOW);
        let sent = PendingSignIn::parse(pending.expose()).unwrap();
        let proof = sent.open(&vault, NOW + SIGN_IN_LIFE - Duration::from_millis(1)).unwrap();
        assert_eq!(proof.user, user);
        assert!(proof.is_for("$hash$") && !proof.is_for("$other$"));
        assert!(sent.open(&vault, NOW + SIGN_IN_LIFE).is_none());
        assert!(sent.open(&Vault::new([8; 32]), NOW).is_none());
        assert_eq!(format!("{sent:?}"), "PendingSignIn(…)");
    }

    #[test]
    fn other_texts_are_not_tokens() {
        let vault = Vault::new([7; 32]);
        let user = UserId(Uuid::from_u128(5));
        for text in ["", "a b", "ä", "a;b", &"x".repeat(MAX_CHARS + 1)] {
            assert_eq!(PendingSignIn::parse(text), None, "{text}");
        }
        let valid = PendingSignIn::new(&vault, user, "$hash$", NOW);
        assert!(valid.expose().len() <= MAX_CHARS);
        // What is sealed for something else is not a token.
        let other = PendingSignIn(URL_SAFE_NO_PAD.encode(vault.seal(&[0; CONTENT_BYTES], user.0.as_bytes())));
        let cut = PendingSignIn(valid.expose()[..20].to_owned());
        assert!(other.open(&vault, NOW).is_none() && cut.open(&vault, NOW).is_none());
    }
}
