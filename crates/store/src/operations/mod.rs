//! What operators do: rules for domains, limits of teams, the audit trail, erasure, retention, rotation of the key
//! file, and the reads for their pages in `queries/`.

mod actor;
pub(crate) mod audit;
pub(crate) mod domains;
pub(crate) mod erase;
mod expire_people;
mod image_places;
pub(crate) mod limits;
mod move_images;
pub(crate) mod queries;
mod rate_cells;
pub(crate) mod reseal;
pub(crate) mod retention;
mod shorten;

pub use actor::Actor;
pub use domains::MAX_DOMAIN_RULES;
pub use erase::{DeletePersonOutcome, Erasure};
pub use expire_people::{ExpiredPeople, UnverifiedCursor};
pub use image_places::ImagePlaces;
pub use limits::{ChangeLimitsOutcome, MAX_TEAM_LIMITS};
pub use move_images::{StoredImage, StoredImagePage};
pub use queries::audit::AuditEntry;
pub use queries::domains::StoredDomainRule;
pub use queries::export::{ExportCursor, ExportPage};
pub use queries::limits::{StoredLimit, TeamLimitsVersion};
pub use queries::operator::failures::{FailedGrab, FailureCursor};
pub use queries::operator::figures::{ClassQueue, DeliveryBacklog, OutcomeCount, Queue, TeamQueue};
pub use queries::operator::teams::{TeamCursor, TeamFilter, TeamSummary};
pub use rate_cells::{RateAsk, RateLease};
pub use reseal::SealedEndpoint;
pub use retention::{EndedGrabRef, EndedGrabs, PurgedGrabs};
pub use shorten::{RequestProgress, Visited};
