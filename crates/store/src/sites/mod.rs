//! Jobs that capture sites, and their pages.
//!
//! `create`, `change` and `queries` are for callers. A job that is due is leased (`turn`) for one step: a sitemap is read, whose
//! addresses `add` stores, or a page is captured, whose grab `capture` notes. When that has ended, `ended` stores the result and the
//! addresses that the page links to. `finish` decides whether a job has ended, and enqueues the message about it.
//!
//! Lock order: team, job, page, and then that of webhooks.

mod add;
mod capture;
mod change;
mod create;
mod ended;
mod erase;
mod finish;
mod queries;
mod site_ref;
mod turn;

pub use add::ReadSitemap;
pub use capture::{PageAttempt, PageEnd};
pub use create::{CreateSiteOutcome, NewSite};
pub use ended::{FoundLinks, PageLinks};
pub(crate) use erase::erase_sites;
pub use finish::{FinishedSite, SiteStop, SiteText, StoppedSite};
pub use queries::{SiteList, SitePageList};
pub use site_ref::SiteRef;
pub use turn::{LeasedSite, PageToCapture, SiteStep, SiteTurn};
