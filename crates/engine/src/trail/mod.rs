//! The audit trail: pages of it, exports, and what the owners of a team see of it.

mod export;
mod of_team;
mod page;

pub use export::MAX_EXPORTED;
pub(crate) use export::chunks;
pub use of_team::{OPERATOR_ACTOR, TeamTrailSearch, export_team_trail, list_team_trail};
pub use page::TrailPage;
pub(crate) use page::page;

pub use grabd_domain::audit::{AuditAction, AuditVisibility};
pub use grabd_store::audit::{AuditEntry, NamedEntry};
