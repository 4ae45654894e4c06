//! One running browser.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use chromiumoxide::cdp::browser_protocol::browser::{CloseParams, GetVersionParams};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::drawing;
use super::entrance::Entrance;
use super::lease::Lease;
use super::pool::{Pool, PrepareError};
use super::shared::Setup;
use super::start::StartError;
use crate::cdp::{CallError, Client};
use crate::process::{Launch, Process, tree};
use crate::proxy::{Listener, OpenError, Proxy};

/// Cold start takes about a second; a loaded machine several.
const START_LIMIT: Duration = Duration::from_secs(20);

/// How long a browser may leave a question about itself unanswered before it counts as hung.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);

const CLOSE_LIMIT: Duration = Duration::from_secs(2);

/// Tabs that cannot be made in a row before a browser counts as hung.
const FAILED_TABS: u32 = 3;

/// How often it is tried whether a browser still draws: a page that keeps it from that then costs its neighbours less time
/// than they have.
const DRAW_EVERY: Duration = Duration::from_secs(4);

/// How often memory is looked at.
const MEMORY_EVERY: Duration = Duration::from_secs(5);

/// Why a browser is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Why {
    /// Its process or its pipe ended.
    Died,
    /// It does not answer, or does not do what it is told.
    Hung,
    /// A tab could not be made or disposed of.
    Stuck,
    /// It made its number of grabs.
    Grabs,
    /// It is old.
    Age,
    /// It holds too much memory.
    Memory,
}

/// A browser with its process, its pipe, and tabs that are ready.
pub(crate) struct Browser {
    pub(super) client: Client,
    pub(super) pool: Pool,
    /// Its name and version.
    pub(super) product: String,
    process: Process,
    proxy: Proxy,
    started: Instant,
    grabs: AtomicU32,
    /// Counts the tabs that are lent out or being disposed of.
    pub(super) lent: TaskTracker,
    pub(super) tracker: TaskTracker,
    replace: watch::Sender<Option<Why>>,
    /// No tab will be made any more: the browser's jail has no socket for one.
    used_up: CancellationToken,
    limits: Wear,
    /// What the browser itself asks for ends here.
    _deny: Listener,
}

/// When a browser is worn out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wear {
    pub(super) grabs: u32,
    pub(super) age: Duration,
    pub(super) rss_bytes: u64,
}

impl Why {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Died => "died",
            Self::Hung => "hung",
            Self::Stuck => "stuck",
            Self::Grabs => "grabs",
            Self::Age => "age",
            Self::Memory => "memory",
        }
    }

    /// Does the browser still work?
    pub(super) fn may_finish(self) -> bool {
        match self {
            Self::Died | Self::Hung => false,
            Self::Stuck | Self::Grabs | Self::Age | Self::Memory => true,
        }
    }
}

impl Browser {
    /// Starts one and waits until it speaks. `spare` tabs are made ready in the background. When a browser in a jail has
    /// made `grabs` grabs, it may have no way out for the next.
    pub(super) async fn start(setup: &Setup, spare: usize, grabs: usize) -> Result<Arc<Self>, StartError> {
        let (entrance, way) = Entrance::prepare(setup, spare, grabs).await?;
        let launch =
            Launch { executable: &setup.executable, directory: setup.next_directory(), owner: setup.owner, way };
        let failed = |reason: String, last_words| StartError::Browser { reason, last_words };
        let (process, client) =
            launch.start(&setup.tracker).map_err(|error| failed(error.to_string(), String::new()))?;
        let (proxy, deny) = match entrance.open().await {
            Ok(opened) => opened,
            Err(error) => {
                process.end(false).await;
                return Err(error);
            }
        };
        let product = match client.call_within(START_LIMIT, None, GetVersionParams::default()).await {
            Ok(version) => version.product,
            Err(error) => {
                process.end(false).await;
                return Err(failed(error.to_string(), process.last_words()));
            }
        };
        let browser = Arc::new(Self {
            pool: Pool::new(spare),
            client,
            product,
            process,
            proxy,
            started: Instant::now(),
            grabs: AtomicU32::new(0),
            lent: TaskTracker::new(),
            tracker: setup.tracker.clone(),
            replace: watch::Sender::new(None),
            used_up: CancellationToken::new(),
            limits: setup.wear,
            _deny: deny,
        });
        setup.tracker.spawn(browser.clone().refill());
        setup.tracker.spawn(browser.clone().look_after());
        tracing::info!(browser.pid = browser.pid(), "a browser is running");
        Ok(browser)
    }

    /// The process.
    pub(super) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Lends a tab; `None` when the browser dies first, or will have none. Cancel-safe.
    pub(super) async fn lease(self: &Arc<Self>) -> Option<Lease> {
        let token = self.lent.token();
        let taken = tokio::select! {
            biased;
            () = self.client.closed().cancelled() => return None,
            taken = self.pool.take() => taken,
            () = self.used_up.cancelled() => return None,
        };
        if self.grabs.fetch_add(1, Ordering::Relaxed) + 1 >= self.limits.grabs {
            self.replace_for(Why::Grabs);
        }
        Some(Lease::new(self.clone(), taken, token))
    }

    /// Waits until the browser should be replaced.
    pub(super) async fn needs_replacing(&self) -> Why {
        let mut replace = self.replace.subscribe();
        match replace.wait_for(Option::is_some).await {
            Ok(why) => why.unwrap_or(Why::Died),
            Err(_) => Why::Died,
        }
    }

    /// Does it answer at all?
    pub(super) async fn answers(&self) -> bool {
        self.client.call_within(ANSWER_LIMIT, None, GetVersionParams::default()).await.is_ok()
    }

    /// Does it draw?
    pub(super) async fn draws(&self) -> bool {
        drawing::succeeds(&self.client).await
    }

    /// Gives it up: every grab in it is lost at once.
    pub(super) fn give_up(&self) {
        if !self.client.closed().is_cancelled() {
            tracing::warn!(browser.pid = self.pid(), "a browser does not answer");
            self.replace_for(Why::Hung);
            self.client.closed().cancel();
        }
    }

    /// Asks for a successor. A worse reason replaces a lighter one.
    pub(super) fn replace_for(&self, why: Why) {
        self.replace.send_if_modified(|current| {
            let modified = current.is_none_or(|current| current.may_finish() && !why.may_finish());
            if modified {
                *current = Some(why);
            }
            modified
        });
    }

    /// Closes it: politely while it works, and then for certain. Its directory is gone afterwards.
    pub(super) async fn close(&self) {
        let asked = self.client.call_within(CLOSE_LIMIT, None, CloseParams::default()).await;
        self.process.end(asked.is_ok()).await;
        self.client.closed().cancel();
        tracing::info!(browser.pid = self.pid(), "a browser has ended");
    }

    /// Makes tabs as they are wanted, for as long as the browser lives.
    async fn refill(self: Arc<Self>) {
        let mut failed = 0;
        while let Some(made) =
            self.client.closed().run_until_cancelled(self.pool.refill(&self.client, &self.proxy)).await
        {
            match made {
                Ok(()) => failed = 0,
                Err(PrepareError::Call(CallError::Closed)) => return,
                Err(PrepareError::Proxy(OpenError::UsedUp)) => {
                    tracing::info!(browser.pid = self.pid(), "a browser has used every socket of its jail");
                    self.replace_for(Why::Grabs);
                    return self.used_up.cancel();
                }
                Err(error) => {
                    tracing::warn!(%error, "a tab could not be made");
                    failed += 1;
                    // A tab that failed half way may have left its context behind.
                    self.replace_for(Why::Stuck);
                    if failed == FAILED_TABS || !self.answers().await {
                        return self.give_up();
                    }
                }
            }
        }
    }

    /// Notices the end of the process and of the browser's best years.
    async fn look_after(self: Arc<Self>) {
        let mut memory = tokio::time::interval(MEMORY_EVERY);
        let old = tokio::time::sleep_until(self.started + self.limits.age);
        let stuck = self.stops_drawing();
        tokio::pin!(old, stuck);
        loop {
            tokio::select! {
                // The end comes first: what has returned is not looked at again.
                biased;
                () = self.client.closed().cancelled() => break,
                () = self.process.exited().cancelled() => break,
                () = &mut stuck => self.give_up(),
                () = &mut old, if !old.is_elapsed() => self.replace_for(Why::Age),
                _ = memory.tick() => {
                    if tree::group_rss(self.pid()) > self.limits.rss_bytes {
                        self.replace_for(Why::Memory);
                    }
                }
            }
        }
        self.client.closed().cancel();
        self.replace_for(Why::Died);
    }

    /// Returns when it no longer draws. As long as no tab is lent nobody waits for that.
    async fn stops_drawing(&self) {
        let mut looks = tokio::time::interval(DRAW_EVERY);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            if !self.lent.is_empty() && !self.draws().await {
                return;
            }
        }
    }
}
