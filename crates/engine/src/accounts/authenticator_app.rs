//! Sets the authenticator app of a user whose second factor is on: the first one beside passkeys, or one on a new device.

use grabd_domain::credentials::SessionToken;
use grabd_store::accounts::NewAuthenticatorApp;

use super::code_check::{FactorAnswer, confirming_step};
use super::second_factor::{SecondFactorError, confirm};
use super::second_factor_mail::{SecondFactorEvent, notify};
use super::second_factor_setup;
use super::sessions::User;
use crate::service::Core;

/// Sets the authenticator app, whose secret the form carries, in place of the former one. `app_code` is a code of the new
/// app; `answer` is the second factor that the user has. Recovery codes and passkeys stay.
///
/// # Errors
/// See [`SecondFactorError`]. Nothing is used up when the code of the new app is wrong.
#[tracing::instrument(name = "accounts.set_authenticator_app", skip_all)]
pub async fn set_authenticator_app(
    core: &Core,
    user: &User,
    this: &SessionToken,
    setup: &str,
    app_code: &str,
    password: &str,
    answer: FactorAnswer<'_>,
) -> Result<(), SecondFactorError> {
    let (vault, now) = (&core.vault, core.clock.now());
    let secret = second_factor_setup::open(vault, user.id, setup, now).ok_or(SecondFactorError::SetupExpired)?;
    let step = confirming_step(core, &secret, app_code).map_err(SecondFactorError::AppCode)?;
    let checked = confirm(core, user, this, password, answer).await?;
    let secret = vault.seal(&secret, user.id.0.as_bytes());
    let new = NewAuthenticatorApp { user: user.id, secret, step, factor: checked.factor };
    let is_set = core.store_as(user.id).accounts().set_authenticator_app(new).await;
    checked.finish(core, is_set?)?;
    tracing::info!(user.id = %user.id, "authenticator app set");
    notify(core, &user.email, SecondFactorEvent::AppSet);
    Ok(())
}
