//! One running browser.

use std::ffi::OsStr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
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
use crate::process::{Cgroup, Launch, Process, Usage};
use crate::proxy::{Listener, OpenError, Proxy};

/// Cold start takes about a second; a loaded machine several.
const START_LIMIT: Duration = Duration::from_secs(20);

const CLOSE_LIMIT: Duration = Duration::from_secs(2);

/// Tabs that cannot be made in a row before a browser counts as hung.
const FAILED_TABS: u32 = 3;

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
    pub(super) process: Process,
    /// Where the kernel keeps its limits, until it is closed.
    cgroup: Mutex<Option<Cgroup>>,
    proxy: Proxy,
    pub(super) started: Instant,
    grabs: AtomicU32,
    /// Counts the tabs that are lent out or being disposed of.
    pub(super) lent: TaskTracker,
    pub(super) tracker: TaskTracker,
    replace: watch::Sender<Option<Why>>,
    /// No tab will be made any more: the browser's jail has no socket for one.
    used_up: CancellationToken,
    /// Ends with the wish for further tabs.
    closing: CancellationToken,
    pub(super) limits: Wear,
    pub(super) usage: Mutex<Usage>,
    /// What the browser itself asks for ends here.
    _deny: Listener,
}

/// When a browser is worn out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wear {
    pub(super) grabs: u32,
    pub(super) age: Duration,
    pub(super) rss_bytes: u64,
    /// Never passed: the page that asks for more goes.
    pub(super) memory_limit_bytes: u64,
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
        let directory = setup.next_directory();
        let name = directory.file_name().unwrap_or_else(|| OsStr::new("browser")).to_owned();
        let launch = Launch { executable: &setup.executable, directory, owner: setup.owner, way };
        let (process, client) = launch
            .start(&setup.tracker)
            .map_err(|error| StartError::Browser { reason: error.to_string(), last_words: String::new() })?;
        // At once, before it has children to leave behind.
        let cgroup = setup.put_into_cgroup(&name, process.pid()).await;
        let (proxy, deny, product) = match Self::speak(entrance, &client, &process).await {
            Ok(spoken) => spoken,
            Err(error) => {
                process.end(false).await;
                if let Some(cgroup) = cgroup {
                    cgroup.end().await;
                }
                return Err(error);
            }
        };
        let browser = Arc::new(Self {
            pool: Pool::new(spare),
            client,
            product,
            process,
            cgroup: Mutex::new(cgroup),
            proxy,
            started: Instant::now(),
            grabs: AtomicU32::new(0),
            lent: TaskTracker::new(),
            tracker: setup.tracker.clone(),
            replace: watch::Sender::new(None),
            used_up: CancellationToken::new(),
            closing: CancellationToken::new(),
            limits: setup.wear,
            usage: Mutex::default(),
            _deny: deny,
        });
        setup.tracker.spawn(browser.clone().refill());
        setup.tracker.spawn(browser.clone().look_after());
        tracing::info!(browser.pid = browser.pid(), "a browser is running");
        Ok(browser)
    }

    /// Waits until the browser has its way out, and says what it is.
    async fn speak(
        entrance: Entrance,
        client: &Client,
        process: &Process,
    ) -> Result<(Proxy, Listener, String), StartError> {
        let (proxy, deny) = entrance.open().await?;
        let asked = client.call_within(START_LIMIT, None, GetVersionParams::default()).await;
        let failed =
            |error: CallError| StartError::Browser { reason: error.to_string(), last_words: process.last_words() };
        Ok((proxy, deny, asked.map_err(failed)?.product))
    }

    /// The process.
    pub(super) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Lends a tab; `None` when the browser dies first, will have none, or is being closed. Cancel-safe.
    pub(super) async fn lease(self: &Arc<Self>) -> Option<Lease> {
        let lease = loop {
            // In this order: a browser that is not being closed now waits for this tab.
            let token = self.lent.token();
            if self.lent.is_closed() {
                return None;
            }
            let taken = tokio::select! {
                biased;
                () = self.client.closed().cancelled() => return None,
                taken = self.pool.take() => taken,
                () = self.used_up.cancelled() => return None,
            };
            let lease = Lease::new(self.clone(), taken, token);
            // Its process may have died while it waited; dropped, it is replaced.
            if !lease.tab().has_crashed() {
                break lease;
            }
        };
        if self.grabs.fetch_add(1, Ordering::Relaxed) + 1 >= self.limits.grabs {
            self.replace_for(Why::Grabs);
        }
        Some(lease)
    }

    /// Waits until the browser should be replaced.
    pub(super) async fn needs_replacing(&self) -> Why {
        let mut replace = self.replace.subscribe();
        match replace.wait_for(Option::is_some).await {
            Ok(why) => why.unwrap_or(Why::Died),
            Err(_) => Why::Died,
        }
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
        // A tab that is being made now would only fail.
        self.closing.cancel();
        let asked = self.client.call_within(CLOSE_LIMIT, None, CloseParams::default()).await;
        self.process.end(asked.is_ok()).await;
        self.client.closed().cancel();
        let cgroup = self.cgroup.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(cgroup) = cgroup {
            cgroup.end().await;
        }
        tracing::info!(browser.pid = self.pid(), "a browser has ended");
    }

    /// Makes tabs as they are wanted, until the browser is closed or dies.
    async fn refill(self: Arc<Self>) {
        let mut failed = 0;
        loop {
            let made = tokio::select! {
                biased;
                () = self.closing.cancelled() => return,
                () = self.client.closed().cancelled() => return,
                made = self.pool.refill(&self.client, &self.proxy) => made,
            };
            match made {
                Ok(()) => failed = 0,
                Err(PrepareError::Call(CallError::Closed)) => return,
                Err(PrepareError::Proxy(OpenError::UsedUp)) => {
                    tracing::info!(browser.pid = self.pid(), "a browser has used every socket of its jail");
                    self.replace_for(Why::Grabs);
                    return self.used_up.cancel();
                }
                // Nothing is left of it, and the next one may live.
                Err(error @ PrepareError::Gone) => {
                    tracing::warn!(%error, "a tab could not be made");
                    failed += 1;
                    if failed == FAILED_TABS {
                        return self.give_up();
                    }
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
}
