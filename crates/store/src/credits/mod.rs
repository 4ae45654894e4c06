//! Credits: lots, and the ledger, which is the only record of how they change.
//!
//! *Invariant:* only this module changes lots and writes entries of the ledger. For each lot, `0 <= held <= remaining`,
//! and its entries add up to what remains. `queries::drift` checks that.

pub(crate) mod cancel_subscription;
pub(crate) mod claw_back;
pub(crate) mod expire_lots;
pub(crate) mod grant;
pub(crate) mod held;
mod ledger;
pub(crate) mod operator_grant;
pub(crate) mod queries;
pub(crate) mod receipts;
pub(crate) mod trial;

pub use claw_back::{Clawback, ClawbackOutcome, Dispute, Purchase, Share};
pub use grant::{Grant, GrantOutcome};
pub use operator_grant::{OperatorGrant, OperatorGrantOutcome};
pub use queries::drift::Drift;
pub use queries::entries::Entry;
pub use queries::holdings::Holding;
pub use receipts::Receipt;
pub use trial::TRIAL_PREFIX;
