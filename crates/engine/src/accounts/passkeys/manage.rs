//! Lists, renames and removes passkeys.

use grabd_domain::Timestamp;
use grabd_domain::credentials::SessionToken;
use grabd_domain::ids::{PasskeyId, UserId};
use grabd_domain::teams::{Name, NameError};
use grabd_store::accounts::RemovePasskeyOutcome;

use crate::accounts::code_check::FactorAnswer;
use crate::accounts::second_factor::{SecondFactorError, confirm};
use crate::accounts::second_factor_mail::{SecondFactorEvent, notify};
use crate::accounts::sessions::User;
use crate::error::{Error, internal_from};
use crate::service::Core;

/// A passkey in the list of its user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PasskeyInfo {
    /// Its id. It is not a credential.
    pub id: PasskeyId,
    /// Its name.
    pub name: String,
    /// When it was added.
    pub created_at: Timestamp,
    /// Its last use.
    pub last_used_at: Option<Timestamp>,
}

/// Why a passkey was not renamed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenamePasskeyError {
    /// The name breaks a rule.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The user has no such passkey.
    #[error("the passkey is unknown")]
    Unknown,
    /// An internal error.
    #[error(transparent)]
    Internal(Error),
}

internal_from!(RenamePasskeyError);

/// The passkeys of a user, oldest first.
///
/// # Errors
/// When the database fails.
#[tracing::instrument(name = "accounts.list_passkeys", skip_all)]
pub async fn list_passkeys(core: &Core, user: UserId) -> Result<Vec<PasskeyInfo>, Error> {
    let rows = core.store.accounts().list_passkeys(user).await?;
    let info = |grabd_store::accounts::Passkey { id, name, created_at, last_used_at, .. }| PasskeyInfo {
        id,
        name,
        created_at,
        last_used_at,
    };
    Ok(rows.into_iter().map(info).collect())
}

/// Renames a passkey.
///
/// # Errors
/// See [`RenamePasskeyError`].
#[tracing::instrument(name = "accounts.rename_passkey", skip_all)]
pub async fn rename_passkey(core: &Core, user: UserId, id: PasskeyId, name: &str) -> Result<(), RenamePasskeyError> {
    let name = Name::parse(name)?.as_str().to_owned();
    let renamed = core.store_as(user).accounts().rename_passkey(user, id, name).await;
    match renamed? {
        true => Ok(()),
        false => Err(RenamePasskeyError::Unknown),
    }
}

/// Removes a passkey. Returns whether the second factor was turned off with it, because the user has no authenticator
/// app and no other passkey.
///
/// # Errors
/// See [`SecondFactorError`].
#[tracing::instrument(name = "accounts.remove_passkey", skip_all)]
pub async fn remove_passkey(
    core: &Core,
    user: &User,
    this: &SessionToken,
    id: PasskeyId,
    password: &str,
    answer: FactorAnswer<'_>,
) -> Result<bool, SecondFactorError> {
    let checked = confirm(core, user, this, password, answer).await?;
    let outcome = core.store_as(user.id).accounts().remove_passkey(user.id, id, checked.factor).await;
    let turned_off = match outcome? {
        RemovePasskeyOutcome::Removed { turned_off } => turned_off,
        RemovePasskeyOutcome::Unknown => {
            // The code was right, and stays unused.
            checked.finish(core, true)?;
            return Err(SecondFactorError::UnknownPasskey);
        }
        RemovePasskeyOutcome::CodeRefused => {
            checked.finish(core, false)?;
            return Err(SecondFactorError::UnknownPasskey);
        }
    };
    checked.finish(core, true)?;
    tracing::info!(user.id = %user.id, passkey.id = %id, turned_off, "passkey removed");
    let event = if turned_off { SecondFactorEvent::Off } else { SecondFactorEvent::PasskeyRemoved };
    notify(core, &user.email, event);
    Ok(turned_off)
}
