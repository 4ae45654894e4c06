//! Users: creation by an operator or by sign-up, sign-in and sign-out.

use std::net::IpAddr;

use grabd_domain::Timestamp;
use grabd_domain::accounts::{Email, EmailError, PasswordError, Role, check_password};
use grabd_domain::credentials::SessionToken;
use grabd_domain::credits::Balance;
use grabd_domain::ids::{TeamId, UserId};
use grabd_domain::teams::TeamName;
use grabd_store::Store;
use grabd_store::accounts::{CreateUserOutcome, InitialTeam, NewUser};

use super::devices::{self, SignInSource};
use super::operator_sign_in::record_operator;
use super::passwords::{self, BUSY_RETRY_S, Busy, HashedFor};
use super::pending_sign_in::{SignInOutcome, continue_sign_in};
use super::sessions::{open_first_session, sign_out};
use super::verification::{VerificationRequest, request_verification};
use crate::error::{Error, internal_from};
use crate::random;
use crate::service::Core;

/// A team of a user, with its spendable credits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// Team id.
    pub team: TeamId,
    /// Name of the team.
    pub team_name: String,
    /// The user's role.
    pub role: Role,
    /// Spendable credits.
    pub live_credits: u32,
}

/// Why a user was not created.
#[derive(Debug, thiserror::Error)]
pub enum CreateUserError {
    /// The password breaks a rule.
    #[error("the password {0}")]
    Password(#[from] PasswordError),
    /// The address has an account.
    #[error("somebody has that e-mail address")]
    EmailTaken,
    /// The team does not exist or is inactive.
    #[error("there is no such team, or it is inactive")]
    TeamInactive,
    /// A database error.
    #[error(transparent)]
    Store(#[from] grabd_store::Error),
}

/// Why a sign-up failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignUpError {
    /// Open sign-up is disabled; only an operator creates accounts.
    #[error("sign-up is disabled")]
    Closed,
    /// The address is malformed.
    #[error(transparent)]
    Email(#[from] EmailError),
    /// The password breaks a rule.
    #[error(transparent)]
    Password(#[from] PasswordError),
    /// The address has an account.
    #[error("somebody has that e-mail address")]
    EmailTaken,
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

internal_from!(SignUpError);

/// A successful sign-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignedUp {
    /// The account was created, and this is its first session.
    SignedIn(SessionToken),
    /// An account exists whose address was never verified. A link was sent there, with which it can be taken over.
    LinkSent,
}

/// Why a sign-in failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignInError {
    /// The address or the password is wrong. The two are not distinguished, so accounts cannot be enumerated.
    #[error("wrong e-mail address or password")]
    InvalidCredentials,
    /// The password is right, but the account is suspended.
    #[error("the account is suspended")]
    Suspended,
    /// Too many tries for this account from this source, or too many concurrent requests.
    #[error("too many tries; retry in {retry_after_s} s")]
    TooMany {
        /// Seconds until the next try can succeed.
        retry_after_s: u64,
    },
    /// An internal error.
    #[error(transparent)]
    Internal(Error),
}

internal_from!(SignInError);

/// Creates a user on behalf of an operator, who vouches for the address. Returns the user, their team and their
/// role.
///
/// # Errors
/// See [`CreateUserError`].
pub async fn create_user(
    store: &Store,
    email: &Email,
    password: &str,
    place: InitialTeam,
    now: Timestamp,
) -> Result<(UserId, TeamId, Role), CreateUserError> {
    check_password(password)?;
    let id = random::user_id(now);
    let password = password.to_owned();
    let password_hash =
        tokio::task::spawn_blocking(move || passwords::hash(&password)).await.expect("hashing does not panic");
    let user = NewUser { id, email: email.clone(), password_hash, initial_team: place, verified: true, now };
    match store.accounts().create_user(user).await? {
        CreateUserOutcome::Created { team, role } => Ok((id, team, role)),
        CreateUserOutcome::EmailTaken => Err(CreateUserError::EmailTaken),
        CreateUserOutcome::TeamInactive => Err(CreateUserError::TeamInactive),
    }
}

/// Id and name of the personal team that is created with a new user.
pub fn personal_team(email: &Email, now: Timestamp) -> (TeamId, String) {
    (random::team_id(now), TeamName::from_local_part(email.local_part()).to_string())
}

/// Creates a user with a personal team, which has neither keys nor credits, and opens a session. If mail is
/// configured, a link to verify the address is sent. `address` is that of the client.
///
/// # Errors
/// See [`SignUpError`].
#[tracing::instrument(name = "accounts.sign_up", skip_all)]
pub async fn sign_up(core: &Core, email: &str, password: &str, address: IpAddr) -> Result<SignedUp, SignUpError> {
    if !core.settings.sign_up {
        return Err(SignUpError::Closed);
    }
    let email = Email::parse(email)?;
    check_password(password)?;
    let busy = |Busy| SignUpError::TooMany { retry_after_s: BUSY_RETRY_S };
    let password_hash =
        core.accounts.passwords.hash(&core.tasks, HashedFor::Stranger(address), password).await.map_err(busy)?;
    let now = core.clock.now();
    let id = random::user_id(now);
    let (team, name) = personal_team(&email, now);
    let (initial_team, verified) = (InitialTeam::New(team, name), !core.sends_mail());
    let user = NewUser { id, email: email.clone(), password_hash, initial_team, verified, now };
    match core.store.accounts().create_user(user).await? {
        CreateUserOutcome::Created { .. } => {
            // If nothing was sent, the user can request a link later.
            request_verification(core, id).await?;
            Ok(SignedUp::SignedIn(open_first_session(core, id).await?))
        }
        CreateUserOutcome::EmailTaken => invite_take_over(core, &email).await,
        CreateUserOutcome::TeamInactive => Err(Error::state("a new team is inactive").into()),
    }
}

/// Sends a link to take over the account with this address, if it was never verified. The chosen password is not stored
/// with the link, since whoever chose it may be somebody else than the reader of the mail.
async fn invite_take_over(core: &Core, email: &Email) -> Result<SignedUp, SignUpError> {
    let user = core.store.accounts().find_user(email).await?;
    let Some(user) = user else { return Err(SignUpError::EmailTaken) };
    match request_verification(core, user.id).await? {
        VerificationRequest::Sent | VerificationRequest::TooMany => Ok(SignedUp::LinkSent),
        VerificationRequest::NotNeeded => Err(SignUpError::EmailTaken),
    }
}

/// Signs in with address and password. If the account has a second factor, its code is needed as well. An unknown address
/// takes as long as a wrong password. After several wrong passwords further ones are refused for a while: see `tries.rs`.
///
/// # Errors
/// See [`SignInError`].
#[tracing::instrument(name = "accounts.sign_in", skip_all)]
pub async fn sign_in(
    core: &Core,
    email: &str,
    password: &str,
    source: &SignInSource,
) -> Result<SignInOutcome, SignInError> {
    let email = Email::parse(email).map_err(|EmailError| SignInError::InvalidCredentials)?;
    let login = core.store.accounts().find_login(&email).await?;
    let source = devices::classify(core, login.as_ref().map(|login| login.user), source).await?;
    // Taken before the check, so that concurrent requests cannot exceed the limit.
    if let Err(wait) = core.accounts.passwords.tries.take(&email, source, core.clock.now()) {
        return Err(SignInError::TooMany { retry_after_s: wait.as_secs().max(1) });
    }
    let (user, stored_hash) = login.map(|login| (login.user, login.password_hash)).unzip();
    let checked_against = stored_hash.clone();
    let checked = core.accounts.passwords.verify(&core.tasks, source.into(), password, stored_hash).await;
    if !matches!(checked, Ok(false)) {
        core.accounts.passwords.tries.give_back(&email, source);
    }
    match (checked, user) {
        (Ok(true), Some(user)) => {
            let found = core.store.accounts().find_user_by_id(user).await?;
            if found.is_some_and(|found| found.suspension.is_some()) {
                return Err(SignInError::Suspended);
            }
            let outcome = continue_sign_in(core, user, checked_against.as_deref().unwrap_or_default()).await?;
            let SignInOutcome::SignedIn(token) = outcome else { return Ok(outcome) };
            // A concurrent password change ends all sessions, but not one opened after it: check the hash again.
            let current = core.store.accounts().find_login(&email).await?;
            if current.map(|login| login.password_hash) != checked_against {
                sign_out(core, &token).await?;
                return Err(SignInError::InvalidCredentials);
            }
            record_operator(core, user, &email).await?;
            Ok(SignInOutcome::SignedIn(token))
        }
        (Ok(true | false), _) => Err(SignInError::InvalidCredentials),
        (Err(Busy), _) => Err(SignInError::TooMany { retry_after_s: BUSY_RETRY_S }),
    }
}

/// The active teams of a user, with their spendable credits.
///
/// # Errors
/// When the database fails.
#[tracing::instrument(name = "accounts.list_memberships", skip_all)]
pub async fn list_memberships(core: &Core, user: UserId) -> Result<Vec<Membership>, Error> {
    let now = core.clock.now();
    let mut memberships = Vec::new();
    for (team, team_name, role) in core.store.accounts().list_memberships(user).await? {
        let lots = core.store.credits().lots(team).await?;
        let live_credits = u32::try_from(Balance::of(&lots, now).total()).unwrap_or(u32::MAX);
        memberships.push(Membership { team, team_name, role, live_credits });
    }
    Ok(memberships)
}
