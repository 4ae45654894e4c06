//! Limits that operators override for a team. Without an override, the setting applies.

mod buckets;
mod shared;
mod table;

pub(crate) use buckets::OwnBuckets;
pub(crate) use shared::{SharedLimits, Unknown};
pub(crate) use table::TeamLimits;

/// Invitations per team and day, for teams without a limit of their own: one may have as many open.
pub(crate) const INVITATIONS_PER_DAY: u32 = 50;
