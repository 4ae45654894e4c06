//! Sites: jobs that capture many pages of one site.
//!
//! `request` parses what callers send, `address` brings addresses to one form and says which are of the same site, `pattern` says
//! which are chosen, `robots` reads a robots.txt, and `sitemap` a sitemap. `record` has the job and its pages, and `skip_reason` why
//! some are not captured. `glob` matches patterns with `*`.

use std::time::Duration;

mod address;
mod glob;
mod pattern;
mod record;
mod request;
mod robots;
mod sitemap;
mod skip_reason;

pub use self::address::{ADDRESS_BYTES, Scope, joined_address, normal_address, origin_of};
pub use self::pattern::{MAX_PATTERNS, PATTERN_CHARS, Pattern};
pub use self::record::{PageCounts, PageState, Site, SiteError, SitePage, SiteState};
pub use self::request::{MAX_DEPTH, MAX_PAGES, NAME_CHARS, REQUESTS_PER_MINUTE, SiteRequest, SiteSpec, Source};
pub use self::robots::{MAX_CRAWL_DELAY, ROBOTS_BYTES, Robots};
pub use self::sitemap::{MAX_ENTRIES, SITEMAP_BYTES, Sitemap, SitemapError};
pub use self::skip_reason::SkipReason;

/// Jobs of a team in an environment that have not ended, unless the operator sets another number.
pub const OPEN_SITES: u32 = 5;
/// How long a job may be open. Then it is canceled: a limit, such as that of what the team stores, may refuse its captures forever.
pub const LONGEST_OPEN: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Kept jobs of a team in an environment. The oldest ones that have ended are deleted for new ones.
pub const KEPT_SITES: u32 = 100;
/// Listed pages of all kept jobs of a team in an environment. The oldest jobs that have ended are deleted for new ones.
pub const KEPT_PAGES: u32 = 20_000;
/// The most bytes that the addresses of all listed pages of a job have together. Further addresses are left out.
pub const LISTED_BYTES: usize = 512 << 10;
/// The most bytes of them that the addresses of pages have together that are not captured, so that there is room for the others.
pub const SKIPPED_BYTES: usize = LISTED_BYTES / 4;
/// Grabs of a job that are open at the same time.
pub const OPEN_GRABS: u32 = 5;
/// Addresses of a job that are listed, although they are not captured. Further ones are left out.
pub const LISTED_SKIPPED: u32 = 500;
/// The most bytes that the addresses of all sitemaps of a job have together. Further ones are left out.
pub const SITEMAP_LIST_BYTES: usize = 16 << 10;
/// Sitemaps that a job reads at most.
pub const MAX_SITEMAPS: u32 = 100;
