//! Challenges for passkeys, and the verification of their answers.

use grabd_domain::ids::UserId;
use grabd_store::accounts::{FactorUse, PasskeyUse};
use serde_json::Value;
use webauthn_rs_core::error::WebauthnError;
use webauthn_rs_core::proto::{AuthenticationState, Credential, PublicKeyCredential, UserVerificationPolicy};

use super::relying_party::relying_party;
use super::sealed;
use crate::error::{Error, internal_from};
use crate::service::Core;

/// What the token of a challenge is sealed for, so that nothing else that is sealed can be used as one.
const PURPOSE: &[u8] = b"passkey challenge";
/// Maximum size of an answer in bytes.
pub(super) const ANSWER_BYTES: usize = 16 * 1024;

/// A challenge for any passkey.
#[derive(Clone, Debug, PartialEq)]
pub struct PasskeyChallenge {
    /// The sealed state, which is sent back with the answer. Valid for
    /// [`CHALLENGE_LIFE`](grabd_domain::accounts::CHALLENGE_LIFE).
    pub token: String,
    /// The options of `navigator.credentials.get`, with binary values in base64url.
    pub options: Value,
}

/// What a browser sent: the token of a challenge, and the answer as JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PasskeyAnswer<'a> {
    /// [`PasskeyChallenge::token`].
    pub token: &'a str,
    /// The result of `navigator.credentials.get`, with binary values in base64url.
    pub answer: &'a str,
}

/// Why the answer of a passkey was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PasskeyError {
    /// The URL of the web app does not allow passkeys.
    #[error("passkeys need a web app with TLS and a host name")]
    Unavailable,
    /// The challenge is too old, or is not one of this service.
    #[error("the challenge has expired")]
    Expired,
    /// Nobody has this passkey, or not the user who was asked for one.
    #[error("the passkey is unknown")]
    Unknown,
    /// It is malformed, was made for another site or challenge, or its signature is wrong.
    #[error("the answer of the passkey is not valid")]
    Invalid,
    /// The challenge was answered before, or the device is a copy whose counter is behind.
    #[error("the answer of the passkey was used before")]
    AlreadyUsed,
    /// An internal error.
    #[error(transparent)]
    Internal(Error),
}

internal_from!(PasskeyError);

/// An answer that is not used up yet.
pub(in crate::accounts) struct VerifiedPasskey {
    /// The user who has the passkey.
    pub(in crate::accounts) user: UserId,
    /// The use, to be recorded in the transaction of what it allows.
    pub(in crate::accounts) factor: FactorUse,
}

/// A new challenge for any passkey of this service.
///
/// # Errors
/// [`PasskeyError::Unavailable`] and [`PasskeyError::Internal`].
#[tracing::instrument(name = "accounts.new_passkey_challenge", skip_all)]
pub fn new_passkey_challenge(core: &Core) -> Result<PasskeyChallenge, PasskeyError> {
    let party = relying_party(core).ok_or(PasskeyError::Unavailable)?;
    // No passkey is listed, so the answer does not depend on whether an account exists.
    let (request, state) = party
        .new_challenge_authenticate_builder(Vec::new(), Some(UserVerificationPolicy::Required))
        .and_then(|builder| party.generate_challenge_authenticate(builder))
        .map_err(Error::other)?;
    let sealed = sealed::seal(&core.vault, PURPOSE, &state, core.clock.now());
    let token = sealed.ok_or_else(|| Error::state("the state cannot be serialized"))?;
    let options = serde_json::to_value(request.public_key)?;
    Ok(PasskeyChallenge { token, options })
}

/// Verifies an answer: its challenge, origin, signature and counter, and that the device verified its user. With `user`,
/// only their passkeys are accepted.
///
/// # Errors
/// See [`PasskeyError`].
pub(in crate::accounts) async fn verify(
    core: &Core,
    user: Option<UserId>,
    answer: PasskeyAnswer<'_>,
) -> Result<VerifiedPasskey, PasskeyError> {
    let party = relying_party(core).ok_or(PasskeyError::Unavailable)?;
    let now = core.clock.now();
    let opened = sealed::open::<AuthenticationState>(&core.vault, PURPOSE, answer.token, now);
    let (state, challenge) = opened.ok_or(PasskeyError::Expired)?;
    let answer: PublicKeyCredential = parse(answer.answer).ok_or(PasskeyError::Invalid)?;
    let found = core.store.accounts().find_passkey(answer.get_credential_id()).await?;
    let passkey = found.ok_or(PasskeyError::Unknown)?;
    if user.is_some_and(|user| user != passkey.user) {
        return Err(PasskeyError::Unknown);
    }
    // The device names the user to whom it gave the passkey (section 7.2 step 6).
    if answer.get_user_unique_id() != Some(passkey.user.0.as_bytes()) {
        return Err(PasskeyError::Invalid);
    }
    let mut credential: Credential = serde_json::from_str(&passkey.credential)?;
    credential.counter = passkey.counter;
    let result = party.authenticate_single_credential(&answer, &state, &credential).map_err(|error| {
        if matches!(error, WebauthnError::CredentialPossibleCompromise) {
            tracing::warn!(
                user.id = %passkey.user, passkey.id = %passkey.id,
                "a passkey was refused because its counter is behind: its device may have been copied"
            );
            return PasskeyError::AlreadyUsed;
        }
        tracing::debug!(%error, passkey.id = %passkey.id, "the answer of a passkey is not valid");
        PasskeyError::Invalid
    })?;
    let used = PasskeyUse { id: passkey.id, challenge, counter: result.counter(), now };
    Ok(VerifiedPasskey { user: passkey.user, factor: FactorUse::Passkey(used) })
}

/// The JSON that a browser sent.
pub(super) fn parse<T: serde::de::DeserializeOwned>(text: &str) -> Option<T> {
    (text.len() <= ANSWER_BYTES).then(|| serde_json::from_str(text).ok()).flatten()
}
