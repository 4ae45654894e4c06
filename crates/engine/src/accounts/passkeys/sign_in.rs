//! Sign-in with a passkey, which needs no password: the device verified the user, so it is both something they have and
//! something they know or are. It is also the second step of a sign-in with a password.

use grabd_domain::credentials::SessionToken;
use grabd_store::accounts::{SecondFactorSignIn, SecondFactorSignInOutcome};

use super::verify::{PasskeyAnswer, PasskeyError, verify};
use crate::accounts::operator_sign_in::record_operator;
use crate::accounts::pending_sign_in::PendingSignIn;
use crate::accounts::sessions::new_session;
use crate::error::{Error, internal_from};
use crate::service::Core;

/// Why a sign-in with a passkey failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PasskeySignInError {
    /// The first step was too long ago.
    #[error("the sign-in has expired")]
    Expired,
    /// The account is suspended.
    #[error("the account is suspended")]
    Suspended,
    /// The answer of the passkey was not accepted.
    #[error(transparent)]
    Passkey(#[from] PasskeyError),
    /// An internal error.
    #[error(transparent)]
    Internal(Error),
}

internal_from!(PasskeySignInError);

/// Opens a session with the answer of a passkey, which can be used once. After the first step of a sign-in, only a passkey
/// of the user who made it is accepted.
///
/// # Errors
/// See [`PasskeySignInError`].
#[tracing::instrument(name = "accounts.sign_in_with_passkey", skip_all)]
pub async fn sign_in_with_passkey(
    core: &Core,
    pending: Option<&PendingSignIn>,
    answer: PasskeyAnswer<'_>,
) -> Result<SessionToken, PasskeySignInError> {
    let now = core.clock.now();
    let expected = match pending.map(|pending| pending.open(&core.vault, now)) {
        Some(None) => return Err(PasskeySignInError::Expired),
        Some(Some(proof)) => Some(proof.user),
        None => None,
    };
    let verified = verify(core, expected, answer).await?;
    let user = verified.user;
    let (token, session) = new_session(user, now);
    let sign_in = SecondFactorSignIn { session, password_hash: None, factor: verified.factor };
    let outcome = core.store_as(user).accounts().sign_in_with_second_factor(sign_in).await;
    match outcome? {
        SecondFactorSignInOutcome::SignedIn => {}
        SecondFactorSignInOutcome::CodeRefused => return Err(PasskeyError::AlreadyUsed.into()),
        SecondFactorSignInOutcome::PasswordObsolete => return Err(PasskeySignInError::Suspended),
    }
    if let Some(found) = core.store.accounts().find_user_by_id(user).await? {
        record_operator(core, user, &found.email).await?;
    }
    Ok(token)
}
