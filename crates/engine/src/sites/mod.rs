//! Sites: jobs that capture many pages of one site.
//!
//! `manage`, `pages` and `watch` are the use-cases of callers. `scheduler` finds what is due: a `turn` of a job reads a sitemap (`documents`),
//! or creates the grab of a page that the host's robots.txt allows (`robots`). When a grab has ended, the `links` of its page are
//! followed, and `finish` reports a job that has ended. A capture is an ordinary asynchronous grab of the team.

mod documents;
mod finish;
mod links;
mod manage;
mod pages;
mod robots;
mod robots_cache;
pub(crate) mod scheduler;
mod secrets;
mod settings;
mod turn;
mod watch;

pub use crate::monitors::ListRequest;
pub use grabd_store::sites::{SiteList, SitePageList};
pub use manage::{cancel, create, get, list, remove};
pub use pages::list_pages;
pub use settings::SiteLimits;
pub(crate) use settings::Sites;
pub use watch::watch;
