//! Browser settings.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use grabd_egress::ClientTls;
use grabd_memory::MemoryBudget;

use crate::FilterLists;
use crate::jail::NetworkJail;
use crate::process::{BrowserUser, short_name};

/// When a browser draws frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FrameMode {
    /// On request. Faster and with less CPU load, and page time can be advanced. Each slot has its own browser.
    #[default]
    OnDemand,
    /// Sixty times a second, on the browser's timer. All slots share one browser.
    Timer,
}

/// How browsers are run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The `chromium-headless-shell` binary. `None` searches the usual directories.
    pub executable: Option<PathBuf>,
    /// Directory for a copy of the program that is mapped with huge pages. `None`: no copy.
    pub program_cache: Option<PathBuf>,
    /// Concurrent grabs.
    pub slots: usize,
    /// When frames are drawn.
    pub frames: FrameMode,
    /// Contexts that a browser keeps ready for the next grabs.
    pub spare_contexts: usize,
    /// A directory used by this service only. Its contents are removed at start. Every browser gets a subdirectory.
    pub run_dir: PathBuf,
    /// Run directories of earlier configurations. Their browsers are ended and their contents removed, unless another
    /// service holds them.
    pub former_run_dirs: Vec<PathBuf>,
    /// Names the control group of the browsers. The same at each start, and different for each service of the machine.
    pub instance: String,
    /// The user that browsers run as when the service is root. `None` selects `grabd` if it exists, else `nobody`.
    pub user: Option<BrowserUser>,
    /// Whether browsers get their own network namespace.
    pub network_jail: NetworkJail,
    /// A program that calls [`launcher`](crate::launcher) before anything else: `/proc/self/exe` if the current program
    /// does. `None` disables jails.
    pub launcher: Option<PathBuf>,
    /// Time from the load event until the page is captured whether it has settled or not.
    pub settle_budget: Duration,
    /// Maximum image height in pixels. WebP is limited to 16383 regardless.
    pub full_page_max_height: u32,
    /// Maximum size of an image file in bytes. A capture with a larger one fails.
    pub image_max_bytes: u64,
    /// The memory for images, shared with the rest of the process. Part of it is reserved before an image is taken.
    pub memory: MemoryBudget,
    /// Grabs after which a browser is replaced.
    pub recycle_after: u32,
    /// Age at which a browser is replaced.
    pub recycle_age: Duration,
    /// Memory of all its processes, in bytes, at which a browser is replaced.
    pub recycle_rss_bytes: u64,
    /// Hard memory limit for all processes of a browser, in bytes. The page that exceeds it is ended.
    pub memory_limit_bytes: u64,
    /// Appended to the User-Agent of every page, to name the service and a contact. May be empty.
    pub user_agent_token: String,
    /// Whether a page is not captured if its site asks for that with `X-Robots-Tag`.
    pub respect_opt_out: bool,
    /// Maximum processes and threads of a browser. The kernel enforces it in a control group or a jail; otherwise they are
    /// counted.
    pub process_limit: u32,
    /// The lists by which ads and trackers are blocked.
    pub lists: Arc<FilterLists>,
    /// For proxies of teams that are spoken to over TLS.
    pub proxy_tls: ClientTls,
}

impl Options {
    /// Default values.
    pub fn new(run_dir: impl Into<PathBuf>) -> Self {
        let run_dir = run_dir.into();
        Self {
            executable: None,
            program_cache: None,
            slots: 2,
            frames: FrameMode::OnDemand,
            spare_contexts: 2,
            instance: short_name(&run_dir),
            run_dir,
            former_run_dirs: Vec::new(),
            user: None,
            network_jail: NetworkJail::Auto,
            launcher: None,
            settle_budget: Duration::from_secs(5),
            full_page_max_height: 16_384,
            image_max_bytes: 32 << 20,
            memory: MemoryBudget::new(256 << 20),
            recycle_after: 100,
            recycle_age: Duration::from_hours(1),
            recycle_rss_bytes: 1_500_000_000,
            memory_limit_bytes: 2 << 30,
            user_agent_token: String::new(),
            respect_opt_out: false,
            process_limit: 1000,
            lists: Arc::default(),
            proxy_tls: ClientTls::default(),
        }
    }
}
