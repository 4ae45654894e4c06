//! A user's second factor: turning it on and off, and new recovery codes. Each needs the password and a
//! code, or the answer of a passkey.

use grabd_domain::Timestamp;
use grabd_domain::credentials::SessionToken;
use grabd_domain::ids::UserId;
use grabd_store::accounts::{NewSecondFactor, SecondFactor};

use super::change_password::{PasswordConfirmationError, confirm_password};
use super::code_check::{CheckedCode, CodeError, FactorAnswer, check_code, confirming_step};
use super::second_factor_mail::{SecondFactorEvent, notify};
use super::sessions::User;
use super::tries::Source;
use super::{recovery_codes, second_factor_setup};
use crate::digest;
use crate::error::{Error, internal_from};
use crate::service::Core;

/// The second factor of a user, without its secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecondFactorStatus {
    /// When it was turned on.
    pub since: Timestamp,
    /// Whether it includes an authenticator app. Otherwise it has only passkeys.
    pub has_app: bool,
    /// Unused recovery codes.
    pub recovery_codes: u64,
}

/// Why a second factor was not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecondFactorError {
    /// The form was open for too long, or is not one of this user.
    #[error("the set-up has expired")]
    SetupExpired,
    /// The user has a second factor already.
    #[error("the second factor is on already")]
    AlreadyOn,
    /// The address of the user is not verified, so the account may be somebody else's.
    #[error("the e-mail address is not verified")]
    Unverified,
    /// The password was not accepted.
    #[error(transparent)]
    Password(#[from] PasswordConfirmationError),
    /// The code was not accepted.
    #[error(transparent)]
    Code(#[from] CodeError),
    /// The code of the new authenticator app was not accepted.
    #[error("new app: {0}")]
    AppCode(CodeError),
    /// The user has no such passkey.
    #[error("the passkey is unknown")]
    UnknownPasskey,
    /// An internal error.
    #[error(transparent)]
    Internal(Error),
}

internal_from!(SecondFactorError);

/// The second factor of a user; `None` when it is off.
///
/// # Errors
/// When the database fails.
#[tracing::instrument(name = "accounts.find_second_factor", skip_all)]
pub async fn find_second_factor(core: &Core, user: UserId) -> Result<Option<SecondFactorStatus>, Error> {
    let found = core.store.accounts().find_second_factor(user).await?;
    let status = |SecondFactor { secret, created_at, recovery_codes, .. }| SecondFactorStatus {
        since: created_at,
        has_app: secret.is_some(),
        recovery_codes,
    };
    Ok(found.map(status))
}

/// Turns on a second factor, whose secret the form carries, and ends all other sessions. Returns the recovery codes,
/// which are not stored and cannot be shown again.
///
/// # Errors
/// See [`SecondFactorError`].
#[tracing::instrument(name = "accounts.turn_on_second_factor", skip_all)]
pub async fn turn_on_second_factor(
    core: &Core,
    user: &User,
    this: &SessionToken,
    setup: &str,
    password: &str,
    code: &str,
) -> Result<Vec<String>, SecondFactorError> {
    if !user.verified {
        return Err(SecondFactorError::Unverified);
    }
    let (vault, now) = (&core.vault, core.clock.now());
    let secret = second_factor_setup::open(vault, user.id, setup, now).ok_or(SecondFactorError::SetupExpired)?;
    confirm_password(core, user, this, password).await?;
    let step = confirming_step(core, &secret, code)?;
    let shown = recovery_codes::generate();
    let new = NewSecondFactor {
        user: user.id,
        secret: vault.seal(&secret, user.id.0.as_bytes()),
        step,
        recovery_codes: recovery_codes::hashes(user.id, &shown),
        keep: digest::of(this.expose()),
        now,
    };
    let turned_on = core.store_as(user.id).accounts().turn_on_second_factor(new).await;
    if !turned_on? {
        return Err(SecondFactorError::AlreadyOn);
    }
    tracing::info!(user.id = %user.id, "second factor turned on");
    notify(core, &user.email, SecondFactorEvent::On);
    Ok(shown)
}

/// Turns off the second factor, and removes all passkeys.
///
/// # Errors
/// See [`SecondFactorError`].
#[tracing::instrument(name = "accounts.turn_off_second_factor", skip_all)]
pub async fn turn_off_second_factor(
    core: &Core,
    user: &User,
    this: &SessionToken,
    password: &str,
    answer: FactorAnswer<'_>,
) -> Result<(), SecondFactorError> {
    let checked = confirm(core, user, this, password, answer).await?;
    let turned_off = core.store_as(user.id).accounts().turn_off_second_factor(user.id, checked.factor).await;
    checked.finish(core, turned_off?)?;
    tracing::info!(user.id = %user.id, "second factor turned off");
    notify(core, &user.email, SecondFactorEvent::Off);
    Ok(())
}

/// Replaces all recovery codes, and returns the new ones, which are not stored and cannot be shown again.
///
/// # Errors
/// See [`SecondFactorError`].
#[tracing::instrument(name = "accounts.replace_recovery_codes", skip_all)]
pub async fn replace_recovery_codes(
    core: &Core,
    user: &User,
    this: &SessionToken,
    password: &str,
    answer: FactorAnswer<'_>,
) -> Result<Vec<String>, SecondFactorError> {
    let checked = confirm(core, user, this, password, answer).await?;
    let shown = recovery_codes::generate();
    let hashes = recovery_codes::hashes(user.id, &shown);
    let replaced = core.store_as(user.id).accounts().replace_recovery_codes(user.id, checked.factor, hashes).await;
    checked.finish(core, replaced?)?;
    tracing::info!(user.id = %user.id, "recovery codes replaced");
    notify(core, &user.email, SecondFactorEvent::NewRecoveryCodes);
    Ok(shown)
}

/// Checks the password and the second factor of a signed-in user. Wrong ones are limited for each session, so that nobody else can
/// use up the tries.
pub(super) async fn confirm<'a>(
    core: &Core,
    user: &'a User,
    this: &SessionToken,
    password: &str,
    answer: FactorAnswer<'_>,
) -> Result<CheckedCode<'a>, SecondFactorError> {
    confirm_password(core, user, this, password).await?;
    let source = Source::Session(digest::of(this.expose()));
    Ok(check_code(core, user.id, &user.email, source, answer).await?)
}
