//! Password changes: with the current password, or with a reset link that is sent by e-mail.
//!
//! Both end the sessions that the former password may have opened. Neither revokes app grants: they were given on a
//! separate consent page, and are listed and revoked there.

use grabd_domain::accounts::{Email, PasswordError, RESET_LIFE, check_password};
use grabd_domain::credentials::{ResetToken, SessionToken};
use grabd_store::accounts::PasswordChange;

use super::passwords::{BUSY_RETRY_S, Busy, HashedFor};
use super::pending_sign_in::{SignInOutcome, continue_sign_in};
use super::sessions::User;
use super::trial::grant_trial;
use super::tries::Source;
use crate::digest;
use crate::error::{Error, internal_from};
use crate::mail::{MailMessage, templates};
use crate::random;
use crate::service::Core;

/// Why a password was not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangePasswordError {
    /// The current password does not match.
    #[error("the current password is wrong")]
    WrongPassword,
    /// The new password breaks a rule.
    #[error(transparent)]
    InvalidNewPassword(#[from] PasswordError),
    /// Too many tries for this account, or too many concurrent requests.
    #[error("too many tries; retry in {retry_after_s} s")]
    TooMany {
        /// Seconds until the next try can succeed.
        retry_after_s: u64,
    },
    /// An internal error.
    #[error(transparent)]
    Internal(Error),
}

internal_from!(ChangePasswordError);

/// Why the password of a signed-in user was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PasswordConfirmationError {
    /// The password is wrong.
    #[error("the password is wrong")]
    Wrong,
    /// Too many tries for this account, or too many concurrent requests.
    #[error("too many tries; retry in {retry_after_s} s")]
    TooMany {
        /// Seconds until the next try can succeed.
        retry_after_s: u64,
    },
    /// An internal error.
    #[error(transparent)]
    Internal(Error),
}

internal_from!(PasswordConfirmationError);

impl From<PasswordConfirmationError> for ChangePasswordError {
    fn from(error: PasswordConfirmationError) -> Self {
        match error {
            PasswordConfirmationError::Wrong => Self::WrongPassword,
            PasswordConfirmationError::TooMany { retry_after_s } => Self::TooMany { retry_after_s },
            PasswordConfirmationError::Internal(error) => Self::Internal(error),
        }
    }
}

/// Why a password was not reset.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResetError {
    /// The link is unknown, expired or already used.
    #[error("the reset link is not valid")]
    InvalidLink,
    /// The new password breaks a rule.
    #[error(transparent)]
    InvalidPassword(#[from] PasswordError),
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

internal_from!(ResetError);

/// Changes a password and ends every other session. Wrong passwords are limited for each session, so that somebody who
/// found an open browser cannot guess, and nobody else can use up the tries.
///
/// # Errors
/// See [`ChangePasswordError`].
#[tracing::instrument(name = "accounts.change_password", skip_all)]
pub async fn change_password(
    core: &Core,
    user: &User,
    this: &SessionToken,
    current: &str,
    new: &str,
) -> Result<(), ChangePasswordError> {
    check_password(new)?;
    let former_hash = confirm_password(core, user, this, current).await?;
    let busy = |Busy| ChangePasswordError::TooMany { retry_after_s: BUSY_RETRY_S };
    let keep = digest::of(this.expose());
    let password_hash = core.accounts.passwords.hash(&core.tasks, HashedFor::Known(keep), new).await.map_err(busy)?;
    let change = PasswordChange { user: user.id, former_hash, password_hash, keep };
    // `false`: the password was changed concurrently.
    if !core.store.accounts().change_password(change).await? {
        return Err(ChangePasswordError::WrongPassword);
    }
    tracing::info!(user.id = %user.id, "password changed");
    notify(core, templates::password_changed(user.email.clone(), &core.host()));
    Ok(())
}

/// Checks the password of a signed-in user, and returns its stored hash. Wrong passwords are limited for each session.
///
/// # Errors
/// See [`PasswordConfirmationError`].
pub(super) async fn confirm_password(
    core: &Core,
    user: &User,
    this: &SessionToken,
    password: &str,
) -> Result<String, PasswordConfirmationError> {
    let source = Source::Session(digest::of(this.expose()));
    if let Err(wait) = core.accounts.passwords.tries.take(&user.email, source, core.clock.now()) {
        return Err(PasswordConfirmationError::TooMany { retry_after_s: wait.as_secs().max(1) });
    }
    let login = core.store.accounts().find_login(&user.email).await?;
    let stored_hash = login.filter(|login| login.user == user.id).map(|login| login.password_hash);
    let checked = core.accounts.passwords.verify(&core.tasks, source.into(), password, stored_hash.clone()).await;
    if !matches!(checked, Ok(false)) {
        core.accounts.passwords.tries.give_back(&user.email, source);
    }
    match (checked, stored_hash) {
        (Ok(true), Some(hash)) => Ok(hash),
        (Ok(_), _) => Err(PasswordConfirmationError::Wrong),
        (Err(Busy), _) => Err(PasswordConfirmationError::TooMany { retry_after_s: BUSY_RETRY_S }),
    }
}

/// Sends a password reset link to this address, or logs it for the operator when mail is not configured. Callers cannot
/// learn whether the account exists: everything that depends on it runs in a task after this function has returned.
pub fn request_password_reset(core: &Core, email: &str) {
    let Ok(email) = Email::parse(email) else { return };
    if !core.accounts.quotas.may_mail(&email) {
        tracing::warn!("too many password resets requested for one address; nothing was sent");
        return;
    }
    let Ok(permit) = core.accounts.resets.clone().try_acquire_owned() else {
        tracing::warn!("too many concurrent password resets; nothing was sent");
        return;
    };
    let core = core.clone();
    core.clone().spawn(async move {
        let _permit = permit;
        // Nobody waits for the result, so errors are only logged.
        let _ = send_reset(&core, email).await.map_err(Error::into_fault);
    });
}

async fn send_reset(core: &Core, email: Email) -> Result<(), Error> {
    let Some(user) = core.store.accounts().find_user(&email).await? else {
        return Ok(());
    };
    let token = ResetToken::new(&random::secret_text()).expect("32 bytes are 43 base64url characters");
    let expires_at = core.clock.now() + RESET_LIFE;
    core.store.accounts().create_password_reset(digest::of(token.expose()), user.id, expires_at).await?;
    let link = format!("{}/new-password?token={}", core.oauth.settings.issuer, token.expose());
    match &core.accounts.mailer {
        // The mailer logs a full queue.
        Some(mailer) => {
            let _ = mailer.enqueue(templates::reset(email, &core.host(), &link));
        }
        None => tracing::info!(
            user.id = %user.id, link,
            "a password was forgotten and mail is not configured: pass the link on within 30 minutes if you know \
             who asks"
        ),
    }
    Ok(())
}

/// Whether a reset token is still valid.
///
/// # Errors
/// When the database fails.
#[tracing::instrument(name = "accounts.is_reset_valid", skip_all)]
pub async fn is_reset_valid(core: &Core, token: &str) -> Result<bool, Error> {
    let Some(token) = ResetToken::parse(token) else { return Ok(false) };
    let found = core.store.accounts().find_reset(&digest::of(token.expose()), core.clock.now()).await;
    Ok(found?.is_some())
}

/// Sets a new password with a reset token, which can be used once, ends all sessions of the user and signs in. If the
/// account has a second factor, its code is needed as well: reading the mail does not prove to have the device. The
/// token proves that the user reads the mail of the address, so it is verified: see `verification.rs`. Wrong
/// passwords do not count, so that nobody can keep the owner out.
///
/// # Errors
/// See [`ResetError`].
#[tracing::instrument(name = "accounts.reset_password", skip_all)]
pub async fn reset_password(core: &Core, token: &str, new: &str) -> Result<SignInOutcome, ResetError> {
    check_password(new)?;
    let token = ResetToken::parse(token).ok_or(ResetError::InvalidLink)?;
    let hash = digest::of(token.expose());
    // Checked first, so that a guessed token does not cost a password hash.
    if core.store.accounts().find_reset(&hash, core.clock.now()).await?.is_none() {
        return Err(ResetError::InvalidLink);
    }
    let busy = |Busy| ResetError::TooMany { retry_after_s: BUSY_RETRY_S };
    let password_hash = core.accounts.passwords.hash(&core.tasks, HashedFor::Known(hash), new).await.map_err(busy)?;
    let now = core.clock.now();
    let reset = core.store.accounts().reset_password(hash, password_hash.clone(), now).await?;
    let user = reset.ok_or(ResetError::InvalidLink)?;
    tracing::info!(user.id = %user, "password reset");
    grant_trial(core, user, now).await?;
    if let Some(user) = core.store.accounts().find_user_by_id(user).await? {
        notify(core, templates::password_changed(user.email, &core.host()));
    }
    Ok(continue_sign_in(core, user, &password_hash).await?)
}

/// Best effort: nothing is sent when mail is not configured or the queue is full.
fn notify(core: &Core, message: MailMessage) {
    if let Some(mailer) = &core.accounts.mailer {
        let _ = mailer.enqueue(message);
    }
}
