//! What an operator decides about browsers.

use std::path::PathBuf;
use std::time::Duration;

use crate::jail::NetworkJail;
use crate::process::BrowserUser;

/// How browsers are run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program, `chromium-headless-shell`. None: looked for in the usual places.
    pub executable: Option<PathBuf>,
    /// Grabs at a time.
    pub slots: usize,
    /// Contexts kept ready for the next grabs.
    pub spare_contexts: usize,
    /// A directory that is ours alone: whatever is in it at start is removed. Every browser gets one of its own inside.
    pub run_dir: PathBuf,
    /// Directories of earlier runs, where they were other ones: what is left of those runs is ended and removed as well,
    /// unless another service holds them now.
    pub former_run_dirs: Vec<PathBuf>,
    /// Whom a service that is root runs browsers as. None: `grabd` when there is such a user, else `nobody`.
    pub user: Option<BrowserUser>,
    /// Whether browsers get a network namespace of their own.
    pub network_jail: NetworkJail,
    /// A program that calls [`launcher`](crate::launcher) before anything else; `/proc/self/exe` when that is this one.
    /// Without it there are no jails.
    pub launcher: Option<PathBuf>,
    /// From a page's load event to the moment it is captured whether it is at rest or not.
    pub settle_budget: Duration,
    /// The tallest picture in pixels; a webp ends at 16383 whatever stands here.
    pub full_page_max_height: u32,
    /// Grabs after which a browser is replaced.
    pub recycle_after: u32,
    /// Age at which a browser is replaced.
    pub recycle_age: Duration,
    /// Memory of all its processes, in bytes, at which a browser is replaced.
    pub recycle_rss_bytes: u64,
    /// Memory of all its processes, in bytes, that a browser never gets: the page that asks for more goes.
    pub memory_limit_bytes: u64,
    /// Processes and threads that a browser never gets more of; kept only where the system lets us make control groups.
    pub process_limit: u32,
}

impl Options {
    /// The usual values, with the one that has none.
    pub fn new(run_dir: impl Into<PathBuf>) -> Self {
        Self {
            executable: None,
            slots: 2,
            spare_contexts: 2,
            run_dir: run_dir.into(),
            former_run_dirs: Vec::new(),
            user: None,
            network_jail: NetworkJail::Auto,
            launcher: None,
            settle_budget: Duration::from_secs(5),
            full_page_max_height: 16_384,
            recycle_after: 100,
            recycle_age: Duration::from_hours(1),
            recycle_rss_bytes: 1_500_000_000,
            memory_limit_bytes: 2 << 30,
            process_limit: 2000,
        }
    }
}
