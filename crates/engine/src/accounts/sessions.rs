//! Where somebody is signed in, and how they end that.

use grabd_domain::accounts::AGENT_CHARS;
use grabd_domain::credentials::SessionToken;
use grabd_domain::ids::UserId;
use grabd_domain::{Fault, Timestamp};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::core::{Core, inside};
use crate::digest;

/// A session as its person sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MySession {
    /// By which it is ended. It opens nothing.
    pub id: Uuid,
    /// What the browser says of itself: its own words.
    pub agent: Option<String>,
    /// Since when there is one.
    pub created_at: Timestamp,
    /// When it was last used, to within an hour.
    pub seen_at: Timestamp,
    /// Is it the one that asks?
    pub is_this: bool,
}

/// The sessions of a person, the one that was used last first.
///
/// # Errors
/// Only our own.
pub async fn list_sessions(core: &Core, user: UserId, this: &SessionToken) -> Result<Vec<MySession>, Fault> {
    let listed = core.store.list_sessions(user, core.clock.now()).await.map_err(inside("accounts.list_sessions"))?;
    let this = digest::of(this.expose());
    let mine = listed.into_iter().map(|session| MySession {
        id: id(&session.hash),
        agent: session.agent,
        created_at: session.created_at,
        seen_at: session.seen_at,
        is_this: session.hash == this,
    });
    Ok(mine.collect())
}

/// Ends one session of a person at once; `false` when they have none with that id.
///
/// # Errors
/// Only our own.
pub async fn end_session(core: &Core, user: UserId, session: Uuid) -> Result<bool, Fault> {
    let step = "accounts.end_session";
    let listed = core.store.list_sessions(user, core.clock.now()).await.map_err(inside(step))?;
    let Some(session) = listed.into_iter().find(|listed| id(&listed.hash) == session) else { return Ok(false) };
    core.store.end_session(user, session.hash).await.map_err(inside(step))
}

/// Ends all sessions of a person at once, except for the one that asks; how many those were.
///
/// # Errors
/// Only our own.
pub async fn end_other_sessions(core: &Core, user: UserId, this: &SessionToken) -> Result<u64, Fault> {
    let this = digest::of(this.expose());
    core.store.end_other_sessions(user, this).await.map_err(inside("accounts.end_other_sessions"))
}

/// Writes down what the browser of a new session says of itself, so that its person knows it again.
///
/// # Errors
/// Only our own.
pub async fn note_agent(core: &Core, session: &SessionToken, agent: &str) -> Result<(), Fault> {
    let agent = agent.chars().filter(|c| !c.is_control()).take(AGENT_CHARS).collect();
    core.store.note_agent(digest::of(session.expose()), agent).await.map_err(inside("accounts.note_agent"))
}

/// What stands for a session in a page: neither its token nor what is kept of it follows from it.
fn id(hash: &[u8; 32]) -> Uuid {
    let digest = Sha256::new_with_prefix("grabd session\n").chain_update(hash).finalize();
    Uuid::from_bytes(digest[..16].try_into().expect("16 of 32 bytes"))
}
