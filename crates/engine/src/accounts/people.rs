//! People: created by an operator or by themselves, signing in and out.

use grabd_domain::accounts::{
    Email, EmailError, PasswordError, Role, SESSION_IDLE, SESSION_LIFE, SESSION_STEP, check_password,
};
use grabd_domain::credentials::SessionToken;
use grabd_domain::credits::Balance;
use grabd_domain::ids::{TeamId, UserId};
use grabd_domain::{Fault, Timestamp};
use grabd_store::{NewPerson, NewSession, Place, Store, Welcomed};

use super::passwords::{self, Busy};
use crate::chance;
use crate::core::{Core, inside};
use crate::digest;

/// Somebody who signs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// Their id.
    pub id: UserId,
    /// How they sign in.
    pub email: Email,
    /// Do they see how the whole service is?
    pub operator: bool,
}

/// A browser in front of which somebody has signed in.
#[derive(Clone, PartialEq, Eq)]
pub struct Session {
    /// Who.
    pub person: Person,
    /// What a form must carry to come from one of our own pages in this session.
    pub csrf: String,
}

/// A team that somebody is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// Which one.
    pub team: TeamId,
    /// What people call it.
    pub team_name: String,
    /// What they are in it.
    pub role: Role,
    /// Live grabs it could make now.
    pub live_credits: u32,
}

/// Why nobody was created.
#[derive(Debug, thiserror::Error)]
pub enum CreatePersonError {
    /// The password will not do.
    #[error("the password {0}")]
    Password(#[from] PasswordError),
    /// There is an account already.
    #[error("somebody has that e-mail address")]
    EmailTaken,
    /// Nobody can work there.
    #[error("there is no such team, or it is inactive")]
    TeamInactive,
    /// The database.
    #[error(transparent)]
    Store(#[from] grabd_store::Error),
}

/// Why somebody could not sign up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignUpError {
    /// Only the operator makes accounts here.
    #[error("signing up is closed")]
    Closed,
    /// The address is none.
    #[error(transparent)]
    Email(#[from] EmailError),
    /// The password will not do.
    #[error(transparent)]
    Password(#[from] PasswordError),
    /// There is an account already.
    #[error("somebody has that e-mail address")]
    EmailTaken,
    /// Too many at once.
    #[error("too many sign up; retry in {retry_after_s} s")]
    TooMany {
        /// When to come back.
        retry_after_s: u64,
    },
    /// Our own failure.
    #[error(transparent)]
    Inside(#[from] Fault),
}

/// Why somebody could not sign in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignInError {
    /// The address or the password is wrong; which one is not told.
    #[error("wrong e-mail address or password")]
    Wrong,
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

/// When to come back if everybody comes at once.
pub(super) const BUSY_RETRY_S: u64 = 5;

/// Creates a person as an operator does; into which team they came, and as what.
///
/// # Errors
/// What keeps them from being created.
pub async fn create_person(
    store: &Store,
    email: &Email,
    password: &str,
    place: Place,
    now: Timestamp,
) -> Result<(UserId, TeamId, Role), CreatePersonError> {
    check_password(password)?;
    let id = chance::user_id(now);
    let password = password.to_owned();
    let password_hash =
        tokio::task::spawn_blocking(move || passwords::hash(&password)).await.expect("hashing does not panic");
    match store.create_person(NewPerson { id, email: email.clone(), password_hash, place, now }).await? {
        Welcomed::Yes { team, role } => Ok((id, team, role)),
        Welcomed::EmailTaken => Err(CreatePersonError::EmailTaken),
        Welcomed::TeamInactive => Err(CreatePersonError::TeamInactive),
    }
}

/// A team of somebody's own, to be made with them.
pub fn own_team(email: &Email, now: Timestamp) -> (TeamId, String) {
    (chance::team_id(now), email.local_part().to_owned())
}

/// Creates a person with a team of their own, which has neither keys nor credits, and signs them in.
///
/// # Errors
/// What keeps them from it.
pub async fn sign_up(core: &Core, email: &str, password: &str) -> Result<SessionToken, SignUpError> {
    if !core.settings.sign_up {
        return Err(SignUpError::Closed);
    }
    let email = Email::parse(email)?;
    check_password(password)?;
    let busy = |Busy| SignUpError::TooMany { retry_after_s: BUSY_RETRY_S };
    let password_hash = core.passwords.hash(&core.tasks, password).await.map_err(busy)?;
    let now = core.clock.now();
    let id = chance::user_id(now);
    let (team, name) = own_team(&email, now);
    let person = NewPerson { id, email, password_hash, place: Place::New(team, name), now };
    match core.store.create_person(person).await.map_err(inside("accounts.sign_up"))? {
        Welcomed::Yes { .. } => Ok(open_session(core, id).await?),
        Welcomed::EmailTaken => Err(SignUpError::EmailTaken),
        Welcomed::TeamInactive => Err(inside("accounts.sign_up")("a new team is inactive").into()),
    }
}

/// Opens a session for whoever knows the password. An address that nobody has takes as long as a wrong password, and
/// after a few wrong ones the account has to wait.
///
/// # Errors
/// What keeps them from it.
pub async fn sign_in(core: &Core, email: &str, password: &str) -> Result<SessionToken, SignInError> {
    let email = Email::parse(email).map_err(|EmailError| SignInError::Wrong)?;
    // Taken before it is known to be wrong, so that many at once get no more.
    if let Err(wait) = core.passwords.take_try(&email, core.clock.now()) {
        return Err(SignInError::TooMany { retry_after_s: wait.as_secs().max(1) });
    }
    let login = core.store.find_login(&email).await.map_err(inside("accounts.sign_in"))?;
    let (user, kept) = login.map(|login| (login.user, login.password_hash)).unzip();
    let checked_against = kept.clone();
    let checked = core.passwords.verify(&core.tasks, password, kept).await;
    if !matches!(checked, Ok(false)) {
        core.passwords.give_back(&email);
    }
    match (checked, user) {
        (Ok(true), Some(user)) => {
            let token = open_session(core, user).await?;
            // Whoever changed the password meanwhile has ended all sessions, and did not know of this one.
            let now = core.store.find_login(&email).await.map_err(inside("accounts.sign_in"))?;
            if now.map(|login| login.password_hash) != checked_against {
                sign_out(core, &token).await?;
                return Err(SignInError::Wrong);
            }
            Ok(token)
        }
        (Ok(true | false), _) => Err(SignInError::Wrong),
        (Err(Busy), _) => Err(SignInError::TooMany { retry_after_s: BUSY_RETRY_S }),
    }
}

pub(super) async fn open_session(core: &Core, user: UserId) -> Result<SessionToken, Fault> {
    let token = SessionToken::new(&chance::secret_text()).expect("32 bytes are 43 base64url characters");
    let now = core.clock.now();
    let session = NewSession { hash: digest::of(token.expose()), user, now, expires_at: now + SESSION_IDLE };
    core.store.open_session(session).await.map_err(inside("accounts.open_session"))?;
    Ok(token)
}

/// The session behind a token, if it is not over: two weeks after its last use, three months after its beginning.
///
/// # Errors
/// Only our own.
pub async fn find_session(core: &Core, token: &SessionToken) -> Result<Option<Session>, Fault> {
    let now = core.clock.now();
    let hash = digest::of(token.expose());
    let found = core.store.find_session(&hash, now).await.map_err(inside("accounts.find_session"))?;
    let Some(session) = found else { return Ok(None) };
    if now.since(session.seen_at) >= SESSION_STEP {
        let expires_at = (now + SESSION_IDLE).min(session.created_at + SESSION_LIFE);
        core.store.extend_session(hash, now, expires_at).await.map_err(inside("accounts.find_session"))?;
    }
    let grabd_store::Person { id, email, created_at: _, operator } = session.person;
    let person = Person { id, email, operator };
    Ok(Some(Session { person, csrf: digest::labelled("csrf", token.expose()) }))
}

/// Ends a session at once. One that is over already is none the worse for it.
///
/// # Errors
/// Only our own.
pub async fn sign_out(core: &Core, token: &SessionToken) -> Result<(), Fault> {
    core.store.close_session(digest::of(token.expose())).await.map_err(inside("accounts.sign_out"))
}

/// The active teams of a person.
///
/// # Errors
/// Only our own.
pub async fn list_memberships(core: &Core, user: UserId) -> Result<Vec<Membership>, Fault> {
    let step = "accounts.list_memberships";
    let now = core.clock.now();
    let mut memberships = Vec::new();
    for (team, team_name, role) in core.store.list_memberships(user).await.map_err(inside(step))? {
        let lots = core.store.lots(team).await.map_err(inside(step))?;
        let live_credits = u32::try_from(Balance::of(&lots, now).total()).unwrap_or(u32::MAX);
        memberships.push(Membership { team, team_name, role, live_credits });
    }
    Ok(memberships)
}
