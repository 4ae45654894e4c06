//! Another password: for whoever knows the current one, and for whoever forgot it and gets the mail of their address.
//!
//! Both end the sessions that the former password may have opened. Neither ends what apps may do: those were allowed on a
//! page of their own, are listed there, and ending them is one click away for whoever suspects more.

use grabd_domain::Fault;
use grabd_domain::accounts::{Email, PasswordError, RESET_LIFE, check_password};
use grabd_domain::credentials::{ResetToken, SessionToken};
use grabd_store::PasswordChange;

use super::passwords::Busy;
use super::people::{BUSY_RETRY_S, Person};
use crate::chance;
use crate::core::{Core, inside};
use crate::digest;
use crate::mail::{Letter, letters};

/// Why a password stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangePasswordError {
    /// The current one is another.
    #[error("the current password is wrong")]
    Wrong,
    /// The new one will not do.
    #[error(transparent)]
    New(#[from] PasswordError),
    /// Too many tries at this account, or too many at once.
    #[error("too many tries; retry in {retry_after_s} s")]
    TooMany {
        /// When to come back.
        retry_after_s: u64,
    },
    /// Our own failure.
    #[error(transparent)]
    Inside(#[from] Fault),
}

/// Why a password was not reset.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResetError {
    /// The link was used before, is too old, or never counted.
    #[error("no such link")]
    Unknown,
    /// The new one will not do.
    #[error(transparent)]
    New(#[from] PasswordError),
    /// Too many at once.
    #[error("too many at once; retry in {retry_after_s} s")]
    TooMany {
        /// When to come back.
        retry_after_s: u64,
    },
    /// Our own failure.
    #[error(transparent)]
    Inside(#[from] Fault),
}

/// Changes a password and ends every other session. Wrong ones are counted with those at the sign-in.
///
/// # Errors
/// What keeps it from being changed.
pub async fn change_password(
    core: &Core,
    person: &Person,
    this: &SessionToken,
    current: &str,
    new: &str,
) -> Result<(), ChangePasswordError> {
    let step = "accounts.change_password";
    check_password(new)?;
    if let Err(wait) = core.passwords.take_try(&person.email, core.clock.now()) {
        return Err(ChangePasswordError::TooMany { retry_after_s: wait.as_secs().max(1) });
    }
    let login = core.store.find_login(&person.email).await.map_err(inside(step))?;
    let kept = login.filter(|login| login.user == person.id).map(|login| login.password_hash);
    let checked = core.passwords.verify(&core.tasks, current, kept.clone()).await;
    if !matches!(checked, Ok(false)) {
        core.passwords.give_back(&person.email);
    }
    let busy = |Busy| ChangePasswordError::TooMany { retry_after_s: BUSY_RETRY_S };
    let Some(former_hash) = kept.filter(|_| matches!(checked, Ok(true))) else {
        return Err(match checked {
            Ok(_) => ChangePasswordError::Wrong,
            Err(error) => busy(error),
        });
    };
    let password_hash = core.passwords.hash(&core.tasks, new).await.map_err(busy)?;
    let keep = digest::of(this.expose());
    let change = PasswordChange { user: person.id, former_hash, password_hash, keep };
    // Whoever else knew it has been quicker.
    if !core.store.change_password(change).await.map_err(inside(step))? {
        return Err(ChangePasswordError::Wrong);
    }
    tracing::info!(user.id = %person.id, "a password was changed");
    notify(core, letters::password_changed(person.email.clone(), &core.host()));
    Ok(())
}

/// Sends whoever has this address a link to choose another password, or leaves it in the log for the operator where no
/// letters are sent. Nobody learns whether there is such a person: all that depends on it happens after this has returned.
pub fn ask_for_reset(core: &Core, email: &str) {
    let Ok(email) = Email::parse(email) else { return };
    if !core.quotas.may_write_to(&email) {
        tracing::warn!("a password was asked for too often; nothing was sent");
        return;
    }
    let Ok(place) = core.resets.clone().try_acquire_owned() else {
        tracing::warn!("too many passwords are asked for at once; nothing was sent");
        return;
    };
    let core = core.clone();
    core.clone().spawn(async move {
        let _place = place;
        // Logged where it went wrong.
        let _ = send_reset(&core, email).await;
    });
}

async fn send_reset(core: &Core, email: Email) -> Result<(), Fault> {
    let step = "accounts.ask_for_reset";
    let Some(person) = core.store.find_person(&email).await.map_err(inside(step))? else { return Ok(()) };
    let token = ResetToken::new(&chance::secret_text()).expect("32 bytes are 43 base64url characters");
    let expires_at = core.clock.now() + RESET_LIFE;
    core.store.keep_reset(digest::of(token.expose()), person.id, expires_at).await.map_err(inside(step))?;
    let link = format!("{}/new-password?token={}", core.settings.oauth.issuer, token.expose());
    match &core.letterbox {
        // Logged there when it is full.
        Some(letterbox) => {
            let _ = letterbox.post(letters::reset(email, &core.host(), &link));
        }
        None => tracing::info!(
            user.id = %person.id, link,
            "a password was forgotten, and no mail is sent: if you know who asks, pass them this link within half an hour"
        ),
    }
    Ok(())
}

/// Does this link still count?
///
/// # Errors
/// Only our own.
pub async fn may_reset(core: &Core, token: &str) -> Result<bool, Fault> {
    let Some(token) = ResetToken::parse(token) else { return Ok(false) };
    let found = core.store.find_reset(&digest::of(token.expose()), core.clock.now()).await;
    Ok(found.map_err(inside("accounts.may_reset"))?.is_some())
}

/// Sets the password of whoever has this link, once, and ends all their sessions.
///
/// # Errors
/// What keeps it from being set.
pub async fn reset_password(core: &Core, token: &str, new: &str) -> Result<(), ResetError> {
    let step = "accounts.reset_password";
    check_password(new)?;
    let token = ResetToken::parse(token).ok_or(ResetError::Unknown)?;
    let hash = digest::of(token.expose());
    // Asked first, so that no guess costs a hash.
    if core.store.find_reset(&hash, core.clock.now()).await.map_err(inside(step))?.is_none() {
        return Err(ResetError::Unknown);
    }
    let busy = |Busy| ResetError::TooMany { retry_after_s: BUSY_RETRY_S };
    let password_hash = core.passwords.hash(&core.tasks, new).await.map_err(busy)?;
    let reset = core.store.reset_password(hash, password_hash, core.clock.now()).await.map_err(inside(step))?;
    let user = reset.ok_or(ResetError::Unknown)?;
    tracing::info!(user.id = %user, "a password was reset");
    if let Some(person) = core.store.person(user).await.map_err(inside(step))? {
        notify(core, letters::password_changed(person.email, &core.host()));
    }
    Ok(())
}

/// Where no letters are sent, or too many wait, people go without.
fn notify(core: &Core, letter: Letter) {
    if let Some(letterbox) = &core.letterbox {
        let _ = letterbox.post(letter);
    }
}
