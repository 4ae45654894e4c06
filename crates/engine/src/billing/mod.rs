//! Balance, usage, ledger and purchases of a team. Callers must have checked that the caller may act for the team.

mod balance_position;
mod csv;
mod daily_grabs;
mod holdings;
mod ledger;
mod ledger_row;
pub(crate) mod low_balance;
mod packages;
mod payer;
mod source;
pub mod stripe;
mod usage;

pub(crate) use balance_position::BalancePosition;

pub use crate::pricing::Package;
use crate::pricing::Pricing;
pub use daily_grabs::{DAYS, DailyGrabs, EndedGrabs, grabs_by_day};
pub use holdings::{Holding, MAX_HOLDINGS, balance, holdings, purchases_since};
pub use ledger::{LedgerPage, MAX_ENTRIES, ledger, ledger_csv};
pub use ledger_row::{Captured, Entry, LedgerRow};
pub use low_balance::{
    AlertCandidate, AlertError, BalanceAlert, balance_alert, list_alert_candidates, set_alert_recipients,
    set_balance_alert,
};
pub use packages::{can_buy, packages};
pub(crate) use payer::find_payer;
pub use payer::payer_name;
pub(crate) use source::FREE_REFERENCES;
pub use source::{is_trial, source};
pub use stripe::checkout::start_checkout;
pub use usage::{Usage, get};

/// The state of the use-cases of billing.
pub(crate) struct Billing {
    pub(crate) pricing: Pricing,
    /// `None` when credits are not sold.
    pub(crate) stripe: Option<stripe::Stripe>,
    pub(crate) balance_position: BalancePosition,
}
