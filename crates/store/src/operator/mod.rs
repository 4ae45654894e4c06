//! What operators do: rules for domains, and the reads for their pages in `queries/`.

pub(crate) mod domains;
pub(crate) mod queries;

pub use domains::MAX_DOMAIN_RULES;
pub use queries::domains::StoredDomainRule;
pub use queries::failures::{FailedGrab, FailureCursor};
pub use queries::figures::{ClassQueue, DeliveryBacklog, OutcomeCount, Queue, TeamQueue};
pub use queries::teams::{TeamCursor, TeamFilter, TeamSummary};
