//! The list of a user's sessions, and ending them.

use grabd_domain::Timestamp;
use grabd_domain::accounts::{Email, SESSION_IDLE, SESSION_LIFE, SESSION_TOUCH_INTERVAL, USER_AGENT_CHARS};
use grabd_domain::credentials::SessionToken;
use grabd_domain::ids::UserId;
use grabd_store::accounts::NewSession;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::digest;
use crate::error::Error;
use crate::random;
use crate::service::Core;

/// A user with an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// User id.
    pub id: UserId,
    /// Sign-in address.
    pub email: Email,
    /// Whether they are an operator of the service.
    pub operator: bool,
    /// Whether their address is verified. Always true without a mail server.
    pub verified: bool,
}

/// A signed-in browser session.
#[derive(Clone, PartialEq, Eq)]
pub struct Session {
    /// The signed-in user.
    pub user: User,
    /// CSRF token that every form of this session must carry.
    pub csrf: String,
}

/// A session, as shown to its user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionInfo {
    /// Identifies the session when it is ended. It is not a credential.
    pub id: Uuid,
    /// The browser's `User-Agent`; untrusted text.
    pub agent: Option<String>,
    /// When it was opened.
    pub created_at: Timestamp,
    /// When it was last used, accurate to an hour.
    pub seen_at: Timestamp,
    /// Whether it is the session of this request.
    pub is_this: bool,
}

/// The sessions of a user, most recently used first.
///
/// # Errors
/// When the database fails.
#[tracing::instrument(name = "accounts.list_sessions", skip_all)]
pub async fn list_sessions(core: &Core, user: UserId, this: &SessionToken) -> Result<Vec<SessionInfo>, Error> {
    let listed = core.store.accounts().list_sessions(user, core.clock.now()).await?;
    let this = digest::of(this.expose());
    let sessions = listed.into_iter().map(|session| SessionInfo {
        id: id(&session.hash),
        agent: session.agent,
        created_at: session.created_at,
        seen_at: session.seen_at,
        is_this: session.hash == this,
    });
    Ok(sessions.collect())
}

/// Ends one session of a user at once. `false` when the user has no session with this id.
///
/// # Errors
/// When the database fails.
#[tracing::instrument(name = "accounts.end_session", skip_all)]
pub async fn end_session(core: &Core, user: UserId, session: Uuid) -> Result<bool, Error> {
    let listed = core.store.accounts().list_sessions(user, core.clock.now()).await?;
    let Some(session) = listed.into_iter().find(|listed| id(&listed.hash) == session) else { return Ok(false) };
    Ok(core.store.accounts().end_session(user, session.hash).await?)
}

/// Ends all sessions of a user at once, except `this`. Returns how many were ended.
///
/// # Errors
/// When the database fails.
#[tracing::instrument(name = "accounts.end_other_sessions", skip_all)]
pub async fn end_other_sessions(core: &Core, user: UserId, this: &SessionToken) -> Result<u64, Error> {
    let this = digest::of(this.expose());
    Ok(core.store.accounts().end_other_sessions(user, this).await?)
}

/// Stores the `User-Agent` of a new session, so that the user can recognise it in the list.
///
/// # Errors
/// When the database fails.
#[tracing::instrument(name = "accounts.record_user_agent", skip_all)]
pub async fn record_user_agent(core: &Core, session: &SessionToken, agent: &str) -> Result<(), Error> {
    let agent = agent.chars().filter(|c| !c.is_control()).take(USER_AGENT_CHARS).collect();
    Ok(core.store.accounts().set_session_agent(digest::of(session.expose()), agent).await?)
}

/// Opens a session; `None` when the user has a second factor.
pub(super) async fn open_session(core: &Core, user: UserId) -> Result<Option<SessionToken>, Error> {
    let (token, session) = new_session(user, core.clock.now());
    let is_open = core.store.accounts().open_session(session).await?;
    Ok(is_open.then_some(token))
}

/// Opens the first session of a new user.
pub(super) async fn open_first_session(core: &Core, user: UserId) -> Result<SessionToken, Error> {
    let failed = || Error::state("a new person has a second factor");
    open_session(core, user).await?.ok_or_else(failed)
}

/// A new session, and its token.
pub(super) fn new_session(user: UserId, now: Timestamp) -> (SessionToken, NewSession) {
    let token = SessionToken::new(&random::secret_text()).expect("32 bytes are 43 base64url characters");
    let session = NewSession { hash: digest::of(token.expose()), user, now, expires_at: now + SESSION_IDLE };
    (token, session)
}

/// The session of a token, unless it has expired: two weeks after its last use, or three months after it was opened.
///
/// # Errors
/// When the database fails.
#[tracing::instrument(name = "accounts.find_session", skip_all)]
pub async fn find_session(core: &Core, token: &SessionToken) -> Result<Option<Session>, Error> {
    let now = core.clock.now();
    let hash = digest::of(token.expose());
    let found = core.store.accounts().find_session(&hash, now).await?;
    let Some(session) = found else { return Ok(None) };
    if now.since(session.seen_at) >= SESSION_TOUCH_INTERVAL {
        let expires_at = (now + SESSION_IDLE).min(session.created_at + SESSION_LIFE);
        core.store.accounts().extend_session(hash, now, expires_at).await?;
    }
    let grabd_store::accounts::User { id, email, created_at: _, operator, verified_at, suspension: _ } = session.user;
    let user = User { id, email, operator, verified: verified_at.is_some() || !core.sends_mail() };
    Ok(Some(Session { user, csrf: digest::derive("csrf", token.expose()) }))
}

/// Ends a session at once. Idempotent.
///
/// # Errors
/// When the database fails.
#[tracing::instrument(name = "accounts.sign_out", skip_all)]
pub async fn sign_out(core: &Core, token: &SessionToken) -> Result<(), Error> {
    Ok(core.store.accounts().close_session(digest::of(token.expose())).await?)
}

/// Public id of a session. Neither the token nor its stored hash can be derived from it.
fn id(hash: &[u8; 32]) -> Uuid {
    let digest = Sha256::new_with_prefix("grabd session\n").chain_update(hash).finalize();
    Uuid::from_bytes(digest[..16].try_into().expect("16 of 32 bytes"))
}
