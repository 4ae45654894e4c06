//! What operators see and do: of the whole service, whosever it is.
//!
//! Each use-case takes an [`Operator`], whom only a session of one makes. To add a view, give it a file with its figures;
//! the queries behind it are in the store's `queries/operator/`.
//!
//! *Invariant:* of a customer's grab an operator learns its host, and neither its address nor its picture. Whatever an
//! operator changes is logged with who did it.

mod failures;
mod grant;
mod overview;
mod team;
mod teams;

pub use failures::{FailuresPage, list_failures};
pub use grant::{CREDITS, Mistake, NewGrant, REASON_CHARS, grant};
pub use overview::{LATE_AFTER, Overview, QUEUE_TEAMS, overview};
pub use team::{OneTeam, find_team};
pub use teams::{TeamRow, TeamsPage, list_teams};

pub use crate::queue::Attached;
pub use grabd_store::{
    EndedAs, Failed, FailedAt, Key, OperatorGranted, Queue, QueueOfTeam, TeamPlace, TeamsWanted, Undelivered, Waiting,
};

use crate::accounts::{Person, Session};

/// Somebody who may see how the whole service is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operator(Person);

impl Operator {
    /// The operator in front of a browser; `None` when it is somebody else.
    pub fn of(session: &Session) -> Option<Self> {
        session.person.operator.then(|| Self(session.person.clone()))
    }
}
