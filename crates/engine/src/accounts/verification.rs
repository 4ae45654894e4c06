//! Verification of e-mail addresses.
//!
//! Without a mail server nobody could verify an address, so accounts count as verified. With one, an account that was
//! created by sign-up can look around, and needs a verified address for what costs or reaches others: teams, live keys,
//! invitations and purchases.
//!
//! The link in the mail verifies the account as it is only in a browser that is signed in to it. Anywhere else it asks
//! for a new password and voids all earlier access, because somebody else may have created the account.

use grabd_domain::accounts::{Email, PasswordError, VERIFICATION_LIFE, check_password};
use grabd_domain::credentials::VerificationToken;
use grabd_domain::ids::UserId;

use super::passwords::{BUSY_RETRY_S, Busy, HashedFor};
use super::pending_sign_in::{SignInOutcome, continue_sign_in};
use super::trial::grant_trial;
use crate::digest;
use crate::error::{Error, internal_from};
use crate::mail::templates;
use crate::random;
use crate::service::Core;

/// The result of a request for a verification link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerificationRequest {
    /// The link is on its way.
    Sent,
    /// Too many messages were sent to the address, or are waiting. Nothing was sent.
    TooMany,
    /// The address needs no verification.
    NotNeeded,
}

/// The account behind a valid link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verification {
    /// The user.
    pub user: UserId,
    /// Their address.
    pub email: Email,
}

/// Why an account was not verified.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerificationError {
    /// The link is unknown, expired, already used, or for another account.
    #[error("the verification link is not valid")]
    InvalidLink,
    /// The new password breaks a rule.
    #[error(transparent)]
    Password(#[from] PasswordError),
    /// Too many concurrent requests.
    #[error("too many concurrent requests; retry in {retry_after_s} s")]
    TooMany {
        /// Seconds until the next try can succeed.
        retry_after_s: u64,
    },
    /// An internal error.
    #[error(transparent)]
    Internal(Error),
}

internal_from!(VerificationError);

/// Whether this user's address is verified, or counts as such.
///
/// # Errors
/// When the database fails.
#[tracing::instrument(name = "accounts.is_verified", skip_all)]
pub async fn is_verified(core: &Core, user: UserId) -> Result<bool, Error> {
    if !core.sends_mail() {
        return Ok(true);
    }
    let user = core.store.accounts().find_user_by_id(user).await?;
    Ok(user.is_some_and(|user| user.verified_at.is_some()))
}

/// Sends a verification link to the address of this user. Limited by the messages that one address may get.
///
/// # Errors
/// When the database fails.
#[tracing::instrument(name = "accounts.request_verification", skip_all)]
pub async fn request_verification(core: &Core, user: UserId) -> Result<VerificationRequest, Error> {
    let Some(mailer) = &core.accounts.mailer else { return Ok(VerificationRequest::NotNeeded) };
    let found = core.store.accounts().find_user_by_id(user).await?;
    let Some(found) = found.filter(|found| found.verified_at.is_none()) else {
        return Ok(VerificationRequest::NotNeeded);
    };
    if !core.accounts.quotas.may_mail(&found.email) {
        tracing::warn!(user.id = %user, "too many e-mails requested for one address; nothing was sent");
        return Ok(VerificationRequest::TooMany);
    }
    let Ok(place) = mailer.reserve() else { return Ok(VerificationRequest::TooMany) };
    let token = VerificationToken::new(&random::secret_text()).expect("32 bytes are 43 base64url characters");
    let expires_at = core.clock.now() + VERIFICATION_LIFE;
    core.store.accounts().create_verification(digest::of(token.expose()), user, expires_at).await?;
    let link = format!("{}/verify-email?token={}", core.oauth.settings.issuer, token.expose());
    place.send(templates::verification(found.email, &core.host(), &link));
    Ok(VerificationRequest::Sent)
}

/// The account behind a link; `None` when it is unknown, expired or already used.
///
/// # Errors
/// When the database fails.
#[tracing::instrument(name = "accounts.find_verification", skip_all)]
pub async fn find_verification(core: &Core, token: &str) -> Result<Option<Verification>, Error> {
    let Some(token) = VerificationToken::parse(token) else { return Ok(None) };
    let found = core.store.accounts().find_verification(&digest::of(token.expose()), core.clock.now()).await;
    let Some(user) = found? else { return Ok(None) };
    let found = core.store.accounts().find_user_by_id(user).await?;
    Ok(found.map(|found| Verification { user, email: found.email }))
}

/// Verifies the address of a signed-in user with a link, which can be used once.
///
/// # Errors
/// [`VerificationError::InvalidLink`], also when the link is for another account.
#[tracing::instrument(name = "accounts.verify_email", skip_all)]
pub async fn verify_email(core: &Core, user: UserId, token: &str) -> Result<(), VerificationError> {
    let token = VerificationToken::parse(token).ok_or(VerificationError::InvalidLink)?;
    let now = core.clock.now();
    let verified = core.store.accounts().verify_email(digest::of(token.expose()), user, now).await;
    if !verified? {
        return Err(VerificationError::InvalidLink);
    }
    tracing::info!(user.id = %user, "e-mail address verified");
    Ok(grant_trial(core, user, now).await?)
}

/// Gives the account to the user who has the link: sets their password, voids all earlier access, verifies the
/// address and signs in. If the account has a second factor, its code is needed as well.
///
/// # Errors
/// See [`VerificationError`].
#[tracing::instrument(name = "accounts.take_over_account", skip_all)]
pub async fn take_over_account(core: &Core, token: &str, password: &str) -> Result<SignInOutcome, VerificationError> {
    check_password(password)?;
    let token = VerificationToken::parse(token).ok_or(VerificationError::InvalidLink)?;
    let hash = digest::of(token.expose());
    // Checked first, so that a guessed token does not cost a password hash.
    if core.store.accounts().find_verification(&hash, core.clock.now()).await?.is_none() {
        return Err(VerificationError::InvalidLink);
    }
    let busy = |Busy| VerificationError::TooMany { retry_after_s: BUSY_RETRY_S };
    let password_hash =
        core.accounts.passwords.hash(&core.tasks, HashedFor::Known(hash), password).await.map_err(busy)?;
    let now = core.clock.now();
    let taken = core.store.accounts().take_over_account(hash, password_hash.clone(), now).await?;
    let user = taken.ok_or(VerificationError::InvalidLink)?;
    tracing::info!(user.id = %user, "e-mail address verified; earlier sessions, keys and apps of the account ended");
    grant_trial(core, user, now).await?;
    Ok(continue_sign_in(core, user, &password_hash).await?)
}
