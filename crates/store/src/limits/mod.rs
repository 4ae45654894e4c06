//! Limits of teams that operators override, and limits that the processes of a cluster share.

pub(crate) mod change;
pub(crate) mod queries;
mod rate_cells;

pub(crate) use change::limit_of;
pub use change::{ChangeLimitsOutcome, MAX_TEAM_LIMITS};
pub use queries::{StoredLimit, TeamLimitsVersion};
pub use rate_cells::{RateAsk, RateLease};
