//! Usage, credits and purchases of a team: one file per page. `chart` renders the last days, `entries` the ledger
//! entries.
//!
//! A purchase leads to Stripe's checkout page and back to [`PAID`]. The return is no proof of payment: credits are
//! added by the signed event from Stripe, and the pages only show what the ledger contains.

pub(crate) mod alert;
mod alert_field;
mod chart;
pub(crate) mod checkout;
mod entries;
pub(crate) mod export;
mod forecast;
pub(crate) mod home;
pub(crate) mod ledger;
pub(crate) mod paid;
pub(crate) mod recipients;
pub(crate) mod show;

/// Redirects to the page of the user's first team.
pub(crate) const HOME: &str = "/billing";
/// The path of a team's usage and billing page. `{team}` is the placeholder for its id.
pub const PAGE: &str = "/teams/{team}/billing";
/// The ledger.
pub(crate) const LEDGER: &str = "/teams/{team}/billing/ledger";
/// The ledger as CSV.
pub(crate) const EXPORT: &str = "/teams/{team}/billing/ledger.csv";
/// Starts a purchase.
pub(crate) const CHECKOUT: &str = "/teams/{team}/billing/checkout";
/// Changes below which balance alerts are sent.
pub(crate) const ALERT: &str = "/teams/{team}/billing/alert";
/// Chooses who gets that alert.
pub(crate) const RECIPIENTS: &str = "/teams/{team}/billing/alert/recipients";
/// The return URL after payment.
pub(crate) const PAID: &str = "/teams/{team}/billing/paid";

/// The last path segment of the page, for the navigation.
const HERE: &str = "billing";
