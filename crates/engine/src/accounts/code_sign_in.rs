//! The second step of a sign-in: the code of the second factor.

use grabd_domain::accounts::Email;
use grabd_domain::credentials::SessionToken;
use grabd_domain::ids::UserId;
use grabd_store::accounts::{FactorUse, SecondFactorSignIn, SecondFactorSignInOutcome};

use super::code_check::{CodeError, FactorAnswer, check_code};
use super::devices::{self, SignInSource};
use super::operator_sign_in::record_operator;
use super::pending_sign_in::PendingSignIn;
use super::second_factor_mail::{SecondFactorEvent, notify};
use super::sessions::new_session;
use crate::error::{Error, internal_from};
use crate::service::Core;

/// Why the second step of a sign-in failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodeSignInError {
    /// The first step was too long ago, the password was changed since, or the account was suspended or deleted.
    #[error("the sign-in has expired")]
    Expired,
    /// The code was not accepted.
    #[error(transparent)]
    Code(#[from] CodeError),
    /// An internal error.
    #[error(transparent)]
    Internal(Error),
}

internal_from!(CodeSignInError);

/// The user of a sign-in that waits for a code, with the password hash that was proved.
struct PendingUser {
    user: UserId,
    email: Email,
    password_hash: String,
}

/// What the page that asks for the second factor shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingSignInInfo {
    /// The e-mail address.
    pub email: Email,
    /// Whether the user has an authenticator app.
    pub has_app: bool,
    /// Whether the user has a passkey.
    pub has_passkeys: bool,
}

/// The user of a sign-in that waits for a code; `None` when it has expired.
///
/// # Errors
/// When the database fails.
#[tracing::instrument(name = "accounts.find_pending_sign_in", skip_all)]
pub async fn find_pending_sign_in(core: &Core, pending: &PendingSignIn) -> Result<Option<PendingSignInInfo>, Error> {
    let Some(PendingUser { user, email, .. }) = find_user(core, pending).await? else { return Ok(None) };
    let factor = core.store.accounts().find_second_factor(user).await?;
    let passkeys = core.store.accounts().list_passkeys(user).await?;
    let has_app = factor.is_some_and(|factor| factor.secret.is_some());
    Ok(Some(PendingSignInInfo { email, has_app, has_passkeys: !passkeys.is_empty() }))
}

/// Opens a session with a code of the authenticator app or a recovery code, each of which can be used once. After
/// several wrong codes further ones are refused for a while: see `tries.rs`.
///
/// # Errors
/// See [`CodeSignInError`].
#[tracing::instrument(name = "accounts.sign_in_with_code", skip_all)]
pub async fn sign_in_with_code(
    core: &Core,
    pending: &PendingSignIn,
    code: &str,
    source: &SignInSource,
) -> Result<SessionToken, CodeSignInError> {
    let Some(user) = find_user(core, pending).await? else { return Err(CodeSignInError::Expired) };
    let PendingUser { user, email, password_hash } = user;
    let source = devices::classify(core, Some(user), source).await?;
    let checked = match check_code(core, user, &email, source, FactorAnswer::Code(code)).await {
        // It was turned off meanwhile. Then the password is enough, but the next sign-in will do.
        Err(CodeError::NotOn) => return Err(CodeSignInError::Expired),
        checked => checked?,
    };
    let (token, session) = new_session(user, core.clock.now());
    let factor = checked.factor;
    let sign_in = SecondFactorSignIn { session, password_hash: Some(password_hash), factor };
    let outcome = core.store_as(user).accounts().sign_in_with_second_factor(sign_in).await;
    match outcome? {
        SecondFactorSignInOutcome::SignedIn => checked.finish(core, true)?,
        SecondFactorSignInOutcome::CodeRefused => checked.finish(core, false)?,
        SecondFactorSignInOutcome::PasswordObsolete => return Err(CodeSignInError::Expired),
    }
    record_operator(core, user, &email).await?;
    if let FactorUse::RecoveryCode(_) = factor {
        tracing::info!(user.id = %user, "a recovery code was used to sign in");
        notify(core, &email, SecondFactorEvent::RecoveryCodeUsed);
    }
    Ok(token)
}

async fn find_user(core: &Core, pending: &PendingSignIn) -> Result<Option<PendingUser>, Error> {
    let Some(proof) = pending.open(&core.vault, core.clock.now()) else { return Ok(None) };
    let login = core.store.accounts().find_login_by_id(proof.user).await?;
    let Some(login) = login.filter(|login| proof.is_for(&login.password_hash)) else { return Ok(None) };
    let user = core.store.accounts().find_user_by_id(proof.user).await?;
    let user = user.filter(|user| user.suspension.is_none());
    Ok(user.map(|user| PendingUser { user: user.id, email: user.email, password_hash: login.password_hash }))
}
