//! The operator's views of the whole service, and grants of credits.
//!
//! Each use-case takes an [`Operator`], which only the session of an operator gives. To add a view, add a file here;
//! its queries belong to `operations/queries/operator/` of the store.
//!
//! *Invariant:* operators see the host of a customer's grab, but neither its URL nor its image. Every change by an
//! operator is logged with the operator's id.

mod audit;
mod domains;
mod failures;
mod filters;
mod grant;
mod latency;
mod limit_overrides;
mod overview;
mod people;
mod service_limits;
mod suspend;
mod team;
mod team_limits;
mod teams;

pub use audit::{AuditSearch, AuditSearchOutcome, EntryChunks, export_audit, list_audit};
pub use domains::{
    DOMAIN_RULES_INTERVAL, DomainRules, SetDomainRuleOutcome, list_domain_rules, remove_domain_rule, set_domain_rule,
};
pub use failures::{FailedHost, FailureSearch, FailuresOutcome, FailuresPage, GROUPED_FAILURES, list_failures};
pub use filters::MAX_FILTER_TEAMS;
pub use grant::{CREDITS, GrantFormError, NewGrant, REASON_CHARS, grant};
pub use latency::Latency;
pub use limit_overrides::change_limits;
pub use overview::{HOURS, LATE_AFTER, LATENCY_CAPTURES, Overview, QUEUE_TEAMS, overview};
pub use people::{PeoplePage, list_people};
pub use service_limits::{ServiceLimits, service_limits};
pub use suspend::{restore, suspend};
pub use team::{TeamDetails, find_team};
pub use teams::{TeamRow, TeamsPage, list_teams};

pub use crate::queue::AttachedRenderer;
pub use grabd_images::DiskSpace;
pub use grabd_store::accounts::{Key, Suspension};
pub use grabd_store::credits::OperatorGrantOutcome;
pub use grabd_store::limits::ChangeLimitsOutcome;
pub use grabd_store::nodes::Node;
pub use grabd_store::operator::{
    ClassQueue, DeliveryBacklog, FailedGrab, FailureCursor, MAX_DOMAIN_RULES, MAX_SEARCHED_FAILURES, OutcomeCount,
    Queue, StoredDomainRule, TeamCursor, TeamFilter, TeamQueue, UserCursor, UserSummary, UserSummaryTeam,
};
pub use team_limits::{LimitRow, LimitSettings, limit_rows};

use crate::accounts::{Session, User, find_second_factor};
use crate::error::Error;
use crate::service::Core;

/// Proof that the caller is an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operator(User);

/// Whether the user of a session may use the operator pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperatorAccess {
    /// They may.
    Granted(Operator),
    /// They are an operator, and must set up a second factor first.
    SecondFactorNeeded,
    /// They are not an operator.
    Denied,
}

impl Operator {
    /// Checks the user of a session.
    ///
    /// # Errors
    /// When the database fails.
    #[tracing::instrument(name = "operator.from_session", skip_all)]
    pub async fn from_session(core: &Core, session: &Session) -> Result<OperatorAccess, Error> {
        let user = &session.user;
        if !user.operator {
            return Ok(OperatorAccess::Denied);
        }
        let needs_factor = core.settings.operations.second_factor_for_operators;
        if needs_factor && find_second_factor(core, user.id).await?.is_none() {
            return Ok(OperatorAccess::SecondFactorNeeded);
        }
        Ok(OperatorAccess::Granted(Self(user.clone())))
    }
}
