//! What operators do: rules for domains, and the reads for their pages in `queries/`.

pub(crate) mod domains;
pub(crate) mod queries;

pub use domains::MAX_DOMAIN_RULES;
pub use queries::domains::StoredDomainRule;
pub use queries::failures::{FailedGrab, FailureCursor, FailureFilter, FoundFailures, MAX_SEARCHED_FAILURES};
pub use queries::figures::{ClassQueue, DeliveryBacklog, OutcomeCount, Queue, TeamQueue};
pub use queries::teams::{TeamCursor, TeamFilter, TeamSummary};
pub use queries::users::{UserCursor, UserFilter, UserSummary, UserSummaryTeam};
