//! Limits that operators override for a team. Without an override, the setting applies.

mod buckets;
mod rows;
mod shared;
mod table;

pub(crate) use buckets::OwnBuckets;
pub use rows::{LimitRow, LimitSettings, limit_rows};
pub(crate) use shared::{SharedLimits, Unknown};
pub(crate) use table::TeamLimits;
