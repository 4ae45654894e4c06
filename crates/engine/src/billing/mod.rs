//! What a team can spend, has used. Whoever calls names the team, and has made sure that it is theirs.

mod captures;
mod csv;
mod holdings;
mod ledger;
mod usage;

pub use captures::{DAYS, DayOfCaptures, Ended, captures_by_day};
pub use holdings::{MAX_HOLDINGS, holdings};
pub use ledger::{LedgerPage, MAX_ENTRIES, ledger, ledger_csv};
pub(crate) use usage::{Usage, get};
