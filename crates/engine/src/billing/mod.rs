//! What a team can spend, has used, and may buy. Whoever calls names the team, and has made sure that it is theirs.

mod captures;
mod csv;
mod holdings;
mod ledger;
mod packages;
pub mod stripe;
mod usage;

pub use captures::{DAYS, DayOfCaptures, Ended, captures_by_day};
pub use holdings::{MAX_HOLDINGS, holdings};
pub use ledger::{LedgerPage, MAX_ENTRIES, ledger, ledger_csv};
pub use packages::{Package, can_buy, packages};
pub use stripe::checkout::start_checkout;
pub(crate) use usage::{Usage, get};
