//! Adding a passkey, in two steps: the user confirms it with their password, and with their second factor if it is on,
//! and then their device creates the passkey.

use grabd_domain::accounts::PASSKEYS;
use grabd_domain::credentials::SessionToken;
use grabd_domain::ids::UserId;
use grabd_domain::teams::{Name, NameError};
use grabd_store::accounts::{AddPasskeyOutcome, NewPasskey};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use webauthn_rs_core::proto::{
    AttestationConveyancePreference, RegisterPublicKeyCredential, RegistrationState, UserVerificationPolicy,
};

use super::relying_party::relying_party;
use super::{sealed, verify};
use crate::accounts::change_password::confirm_password;
use crate::accounts::code_check::FactorAnswer;
use crate::accounts::recovery_codes;
use crate::accounts::second_factor::{SecondFactorError, confirm};
use crate::accounts::second_factor_mail::{SecondFactorEvent, notify};
use crate::accounts::sessions::User;
use crate::error::{Error, internal_from};
use crate::service::Core;
use crate::{digest, random};

/// What the token is sealed for, with the user and the session.
const PURPOSE: &[u8] = b"new passkey";

/// A confirmed request for a passkey.
#[derive(Clone, Debug, PartialEq)]
pub struct NewPasskeyChallenge {
    /// The sealed state, which is sent back with the new passkey. Valid for
    /// [`CHALLENGE_LIFE`](grabd_domain::accounts::CHALLENGE_LIFE).
    pub token: String,
    /// The options of `navigator.credentials.create`, with binary values in base64url.
    pub options: Value,
}

/// Why no passkey was added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddPasskeyError {
    /// The URL of the web app does not allow passkeys.
    #[error("passkeys need a web app with TLS and a host name")]
    Unavailable,
    /// The name breaks a rule.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The user has as many as are allowed.
    #[error("an account has at most {PASSKEYS} passkeys")]
    TooMany,
    /// The password or the second factor was not accepted.
    #[error(transparent)]
    Confirmation(#[from] SecondFactorError),
    /// The confirmation is too old, was used before, or the second factor was turned on or off since.
    #[error("the confirmation has expired")]
    Expired,
    /// What the device created is not valid for this service.
    #[error("the passkey is not valid")]
    Invalid,
    /// The passkey was added before.
    #[error("the passkey was added before")]
    AlreadyAdded,
    /// An internal error.
    #[error(transparent)]
    Internal(Error),
}

internal_from!(AddPasskeyError);

/// What the token contains.
#[derive(Serialize, Deserialize)]
struct Confirmed {
    name: String,
    /// Whether the second factor was on.
    was_on: bool,
    state: RegistrationState,
}

/// Checks the password, and an answer of the second factor if it is on, which is used up. Then the user may add one
/// passkey with this session.
///
/// # Errors
/// See [`AddPasskeyError`].
#[tracing::instrument(name = "accounts.confirm_new_passkey", skip_all)]
pub async fn confirm_new_passkey(
    core: &Core,
    user: &User,
    this: &SessionToken,
    name: &str,
    password: &str,
    answer: FactorAnswer<'_>,
) -> Result<NewPasskeyChallenge, AddPasskeyError> {
    let party = relying_party(core).ok_or(AddPasskeyError::Unavailable)?;
    if !user.verified {
        return Err(SecondFactorError::Unverified.into());
    }
    let name = Name::parse(name)?;
    let existing = core.store.accounts().list_passkeys(user.id).await?;
    if existing.len() as u64 >= PASSKEYS {
        return Err(AddPasskeyError::TooMany);
    }
    let was_on = core.store.accounts().has_second_factor(user.id).await?;
    if was_on {
        let checked = confirm(core, user, this, password, answer).await?;
        let used = core.store_as(user.id).accounts().use_second_factor(user.id, checked.factor).await;
        checked.finish(core, used?).map_err(SecondFactorError::from)?;
    } else {
        confirm_password(core, user, this, password).await.map_err(SecondFactorError::from)?;
    }
    let (email, ids) = (user.email.as_str(), existing.into_iter().map(|passkey| passkey.credential_id).collect());
    let (request, state) = party
        .new_challenge_register_builder(user.id.0.as_bytes(), email, email)
        .and_then(|builder| {
            let builder = builder
                .attestation(AttestationConveyancePreference::None)
                .user_verification_policy(UserVerificationPolicy::Required)
                // So that the device finds it without an e-mail address.
                .require_resident_key(true)
                .exclude_credentials(Some(ids));
            party.generate_challenge_register(builder)
        })
        .map_err(Error::other)?;
    let confirmed = Confirmed { name: name.as_str().to_owned(), was_on, state };
    let sealed = sealed::seal(&core.vault, &owner(user.id, this), &confirmed, core.clock.now());
    let token = sealed.ok_or_else(|| Error::state("the state cannot be serialized"))?;
    let options = serde_json::to_value(request.public_key)?;
    Ok(NewPasskeyChallenge { token, options })
}

/// Adds the passkey that a device created. If the second factor was off, turns it on, ends all other sessions, and
/// returns the recovery codes, which are not stored and cannot be shown again.
///
/// # Errors
/// See [`AddPasskeyError`].
#[tracing::instrument(name = "accounts.add_passkey", skip_all)]
pub async fn add_passkey(
    core: &Core,
    user: &User,
    this: &SessionToken,
    token: &str,
    created: &str,
) -> Result<Option<Vec<String>>, AddPasskeyError> {
    let party = relying_party(core).ok_or(AddPasskeyError::Unavailable)?;
    let now = core.clock.now();
    let opened = sealed::open::<Confirmed>(&core.vault, &owner(user.id, this), token, now);
    let (Confirmed { name, was_on, state }, challenge) = opened.ok_or(AddPasskeyError::Expired)?;
    let created: RegisterPublicKeyCredential = verify::parse(created).ok_or(AddPasskeyError::Invalid)?;
    let credential = party.register_credential(&created, &state, None).map_err(|error| {
        tracing::debug!(%error, user.id = %user.id, "a new passkey is not valid");
        AddPasskeyError::Invalid
    })?;
    let shown = (!was_on).then(recovery_codes::generate);
    let new = NewPasskey {
        id: random::passkey_id(now),
        user: user.id,
        name,
        credential_id: credential.cred_id.clone(),
        credential: serde_json::to_string(&credential)?,
        counter: credential.counter,
        challenge,
        recovery_codes: shown.as_ref().map(|shown| recovery_codes::hashes(user.id, shown)),
        keep: digest::of(this.expose()),
        now,
    };
    let id = new.id;
    match core.store_as(user.id).accounts().add_passkey(new).await? {
        AddPasskeyOutcome::Added => {}
        AddPasskeyOutcome::Obsolete => return Err(AddPasskeyError::Expired),
        AddPasskeyOutcome::TooMany => return Err(AddPasskeyError::TooMany),
        AddPasskeyOutcome::AlreadyAdded => return Err(AddPasskeyError::AlreadyAdded),
    }
    tracing::info!(user.id = %user.id, passkey.id = %id, "passkey added");
    notify(core, &user.email, SecondFactorEvent::PasskeyAdded);
    Ok(shown)
}

fn owner(user: UserId, this: &SessionToken) -> Vec<u8> {
    [PURPOSE, user.0.as_bytes(), &digest::of(this.expose())].concat()
}
