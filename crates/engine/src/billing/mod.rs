//! What a team can spend, has used, and may buy. Whoever calls names the team, and has made sure that it is theirs.

mod captures;
mod csv;
mod holdings;
mod ledger;
mod packages;
mod source;
pub mod stripe;
mod usage;

pub use captures::{DAYS, DayOfCaptures, Ended, captures_by_day};
pub use holdings::{Holding, MAX_HOLDINGS, balance, holdings, purchases_since};
pub use ledger::{Entry, LedgerPage, MAX_ENTRIES, ledger, ledger_csv};
pub use packages::{Package, can_buy, packages};
pub use source::source;
pub use stripe::checkout::start_checkout;
pub(crate) use usage::{Usage, get};
