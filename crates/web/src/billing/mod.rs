//! What a team has used and can spend, and how it gets more: one file per page. `chart` draws the last days, and `entries`
//! says the ledger in people's words.
//!
//! A purchase goes by Stripe's page and back to [`PAID`], which is no proof: credits come with the event that Stripe signs,
//! and pages only tell what the ledger has.

mod chart;
pub(crate) mod checkout;
mod entries;
pub(crate) mod export;
pub(crate) mod ledger;
pub(crate) mod paid;
pub(crate) mod show;

use crate::Web;
use crate::page::Frame;
use crate::team::AtTeam;
use crate::teams;

/// The path of a team's page about its usage and credits, where `{team}` stands for its id.
pub const PAGE: &str = "/teams/{team}/billing";
/// Everything that has come and gone.
pub(crate) const LEDGER: &str = "/teams/{team}/billing/ledger";
/// The same as a file.
pub(crate) const EXPORT: &str = "/teams/{team}/billing/ledger.csv";
/// Where a purchase begins.
pub(crate) const CHECKOUT: &str = "/teams/{team}/billing/checkout";
/// Where people come back to who have paid.
pub(crate) const PAID: &str = "/teams/{team}/billing/paid";

/// The last part of the page's path, for the navigation.
const HERE: &str = "billing";

/// The frame of these pages, which are about the team itself.
fn frame(web: &Web, at: &AtTeam) -> Frame {
    Frame { here: teams::PATH, ..web.team_frame(at, HERE) }
}
