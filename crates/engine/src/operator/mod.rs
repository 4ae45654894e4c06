//! The operator's views of the whole service, and grants of credits.
//!
//! Each use-case takes an [`Operator`], which only the session of an operator gives. To add a view, add a file here;
//! its queries belong to `operations/queries/operator/` of the store.
//!
//! *Invariant:* operators see the host of a customer's grab, but neither its URL nor its image. Every change by an
//! operator is logged with the operator's id.

mod audit;
mod failures;
mod grant;
mod limits;
mod overview;
mod suspend;
mod team;
mod teams;

pub use audit::{AuditPage, list_audit};
pub use failures::{FailuresPage, list_failures};
pub use grant::{CREDITS, GrantFormError, NewGrant, REASON_CHARS, grant};
pub use limits::change_limits;
pub use overview::{LATE_AFTER, Overview, QUEUE_TEAMS, overview};
pub use suspend::{restore, suspend};
pub use team::{TeamDetails, find_team};
pub use teams::{TeamRow, TeamsPage, list_teams};

pub use crate::limits::LimitRow;
pub use crate::queue::AttachedRenderer;
pub use grabd_store::accounts::Key;
pub use grabd_store::credits::OperatorGrantOutcome;
pub use grabd_store::operations::{
    AuditEntry, ChangeLimitsOutcome, ClassQueue, DeliveryBacklog, FailedGrab, FailureCursor, OutcomeCount, Queue,
    TeamCursor, TeamFilter, TeamQueue,
};

use crate::accounts::{Person, Session};

/// Proof that the caller is an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operator(Person);

impl Operator {
    /// The operator of a session; `None` when the person is not an operator.
    pub fn from_session(session: &Session) -> Option<Self> {
        session.person.operator.then(|| Self(session.person.clone()))
    }
}
