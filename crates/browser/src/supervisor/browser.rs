//! One running browser.

use std::ffi::OsStr;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use chromiumoxide::cdp::browser_protocol::browser::{CloseParams, GetVersionParams, GetVersionReturns};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::drawing;
use super::network_setup::NetworkSetup;
use super::pool::{Pool, PrepareError};
use super::restart::{RecyclePolicy, RestartReason};
use super::setup::Setup;
use super::start::StartError;
use crate::cdp::{CallError, Client};
use crate::jail;
use crate::options::FrameMode;
use crate::page::{DrawLock, Frames, Identity};
use crate::process::{Cgroup, Exceeded, Launch, Process, Usage};
use crate::proxy::{Listener, OpenError, Proxy};

/// A cold start takes about a second, or several on a loaded machine.
const START_LIMIT: Duration = Duration::from_secs(20);

const CLOSE_LIMIT: Duration = Duration::from_secs(2);

/// Consecutive tabs that cannot be created before a browser counts as hung.
const MAX_FAILED_TABS: u32 = 3;

/// A running browser with its process, its CDP pipe and its prepared tabs.
pub(crate) struct Browser {
    pub(super) client: Client,
    pub(super) pool: Pool,
    /// Set if frames are drawn on demand.
    pub(super) draw_lock: Option<DrawLock>,
    /// The product name and version.
    pub(super) product: String,
    /// What it calls itself.
    identity: Arc<Identity>,
    pub(super) process: Process,
    /// Whether it has the pages of one grab at a time, so that ending it affects no other grab.
    pub(super) is_exclusive: bool,
    is_jailed: bool,
    /// Whether a page with many threads takes the processors from other browsers.
    pub(super) shares_by_thread: bool,
    /// The maximum number of its processes and threads.
    pub(super) max_tasks: u32,
    /// The limit that its page exceeded.
    exceeded: OnceLock<Exceeded>,
    /// The control group that enforces its limits, until it is closed.
    cgroup: Mutex<Option<Cgroup>>,
    proxy: Proxy,
    pub(super) started: Instant,
    pub(super) grabs: AtomicU32,
    /// Counts the tabs that are leased or being disposed of.
    pub(super) leased: TaskTracker,
    pub(super) tracker: TaskTracker,
    replace: watch::Sender<Option<RestartReason>>,
    /// Cancelled when no more tabs can be created because the jail's sockets are used up.
    pub(super) sockets_exhausted: CancellationToken,
    /// Cancelled when the browser is being closed and needs no more tabs.
    closing: CancellationToken,
    pub(super) limits: RecyclePolicy,
    pub(super) usage: Mutex<Usage>,
    /// Refuses the browser's own requests.
    _deny: Listener,
}

impl Browser {
    /// Starts a browser that draws when `frames` says, and waits until it answers. Prepares `spare` tabs in the background. A
    /// jailed browser has sockets for `grabs` grabs and may be unable to make more.
    pub(super) async fn start(
        setup: &Setup,
        frames: FrameMode,
        spare: usize,
        grabs: usize,
    ) -> Result<Arc<Self>, StartError> {
        let (network_setup, network) = NetworkSetup::prepare(setup, spare, grabs).await?;
        let directory = setup.next_directory();
        let name = directory.file_name().unwrap_or_else(|| OsStr::new("browser")).to_owned();
        let launch = Launch {
            executable: setup.executable(),
            directory,
            owner: setup.owner,
            network,
            frames,
            max_response_bytes: setup.max_response_bytes,
            max_tasks: setup.limits.tasks,
        };
        let (process, client) = launch
            .start(&setup.tracker)
            .map_err(|error| StartError::Browser { reason: error.to_string(), stderr_tail: String::new() })?;
        // Before it has child processes, which would stay outside.
        let cgroup = setup.put_into_cgroup(&name, process.pid()).await;
        let (proxy, deny, version) = match Self::connect(network_setup, &client, &process).await {
            Ok(connected) => connected,
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
            draw_lock: match frames {
                FrameMode::OnDemand => Some(DrawLock::default()),
                FrameMode::Timer => None,
            },
            client,
            identity: Arc::new(Identity::new(&version.product, &version.user_agent, &setup.user_agent_token)),
            product: version.product,
            process,
            is_exclusive: frames == FrameMode::OnDemand || grabs == 1,
            exceeded: OnceLock::new(),
            is_jailed: setup.launcher.is_some(),
            shares_by_thread: !setup.weighs_browsers(),
            max_tasks: setup.limits.tasks,
            cgroup: Mutex::new(cgroup),
            proxy,
            started: Instant::now(),
            grabs: AtomicU32::new(0),
            leased: TaskTracker::new(),
            tracker: setup.tracker.clone(),
            replace: watch::Sender::new(None),
            sockets_exhausted: CancellationToken::new(),
            closing: CancellationToken::new(),
            limits: setup.recycle,
            usage: Mutex::default(),
            _deny: deny,
        });
        // These tasks run until the browser is closed, which its caller does. So nothing may be awaited from here on: a start
        // that is cancelled at shutdown would leave a browser that nobody closes.
        setup.tracker.spawn(browser.clone().refill());
        setup.tracker.spawn(browser.clone().monitor());
        tracing::info!(browser.pid = browser.pid(), "a browser is running");
        setup.check_mapping(browser.pid());
        Ok(browser)
    }

    /// Opens the proxy, waits for the browser's first answer, and returns its version.
    async fn connect(
        network_setup: NetworkSetup,
        client: &Client,
        process: &Process,
    ) -> Result<(Proxy, Listener, GetVersionReturns), StartError> {
        let (proxy, deny) = network_setup.open().await?;
        let version = client.call_within(START_LIMIT, None, GetVersionParams::default()).await;
        let failed =
            |error: CallError| StartError::Browser { reason: error.to_string(), stderr_tail: process.stderr_tail() };
        Ok((proxy, deny, version.map_err(failed)?))
    }

    /// The process id.
    pub(super) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Waits until the browser must be replaced.
    pub(super) async fn replacement_requested(&self) -> RestartReason {
        let mut replace = self.replace.subscribe();
        match replace.wait_for(Option::is_some).await {
            Ok(why) => why.unwrap_or(RestartReason::Died),
            Err(_) => RestartReason::Died,
        }
    }

    /// The frame source of one more page.
    fn frames(&self) -> Frames {
        match &self.draw_lock {
            Some(lock) => Frames::OnDemand(lock.page(&self.tracker)),
            None => Frames::Timer,
        }
    }

    /// Returns true if the browser draws. A browser that draws on demand draws for one page only, so it is not checked.
    pub(super) async fn can_draw(&self) -> bool {
        match self.draw_lock {
            Some(_) => true,
            None => drawing::can_draw(&self.client).await,
        }
    }

    /// Marks the browser as hung, which ends all of its grabs.
    pub(super) fn mark_hung(&self) {
        if !self.client.closed().is_cancelled() {
            tracing::warn!(browser.pid = self.pid(), "a browser is not responding");
        }
        self.end_at_once(RestartReason::Hung);
    }

    /// Kills the browser, which ends all of its grabs. Whoever keeps it running replaces it.
    pub(super) fn end_at_once(&self, why: RestartReason) {
        if !self.client.closed().is_cancelled() {
            tracing::info!(browser.pid = self.pid(), why = why.as_str(), "ending a browser at once");
            self.request_replacement(why);
            self.process.kill();
            self.client.closed().cancel();
        }
    }

    /// Kills the browser because its only page exceeds a limit.
    pub(super) fn end_page(&self, exceeded: Exceeded) {
        // The first one counts.
        let _ = self.exceeded.set(exceeded);
        self.end_at_once(RestartReason::Excess);
    }

    /// The limit that its only page exceeded. None if it has pages of several grabs.
    pub(super) fn exceeded(&self) -> Option<Exceeded> {
        let by_kernel = || self.cgroup.lock().unwrap_or_else(PoisonError::into_inner).as_ref()?.exceeded();
        self.exceeded.get().copied().or_else(|| by_kernel().filter(|_| self.is_exclusive))
    }

    /// Whether the kernel limits the number of processes and threads.
    pub(super) fn has_task_limit(&self) -> bool {
        self.is_jailed && jail::counts_tasks() || self.cgroup.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Requests a replacement. A reason that ends grabs overrides one that does not.
    pub(super) fn request_replacement(&self, why: RestartReason) {
        self.replace.send_if_modified(|current| {
            let modified = current.is_none_or(|current| current.may_finish() && !why.may_finish());
            if modified {
                *current = Some(why);
            }
            modified
        });
    }

    /// Asks the browser to close, then ends its process. Its directory is removed afterwards.
    pub(super) async fn close(&self) {
        // Creating a tab would fail now.
        self.closing.cancel();
        let closed = self.client.call_within(CLOSE_LIMIT, None, CloseParams::default()).await;
        self.process.end(closed.is_ok()).await;
        self.client.closed().cancel();
        let cgroup = self.cgroup.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(cgroup) = cgroup {
            cgroup.end().await;
        }
        tracing::info!(browser.pid = self.pid(), "a browser has exited");
    }

    /// Creates tabs as they are requested, until the browser is closed or dies.
    async fn refill(self: Arc<Self>) {
        let mut failed = 0;
        loop {
            let result = tokio::select! {
                biased;
                () = self.closing.cancelled() => return,
                () = self.client.closed().cancelled() => return,
                result = self.pool.refill(&self.client, &self.proxy, &self.identity, self.pid(), || self.frames()) => result,
            };
            match result {
                Ok(()) => failed = 0,
                Err(PrepareError::Call(CallError::Closed)) => return,
                Err(PrepareError::Proxy(OpenError::Exhausted)) => {
                    tracing::info!(browser.pid = self.pid(), "a browser has used all sockets of its jail");
                    self.request_replacement(RestartReason::Grabs);
                    return self.sockets_exhausted.cancel();
                }
                // The crashed tab left nothing behind, and the next one may work.
                Err(error @ PrepareError::Crashed) => {
                    tracing::warn!(%error, "cannot create a tab");
                    failed += 1;
                    if failed == MAX_FAILED_TABS {
                        return self.mark_hung();
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot create a tab");
                    failed += 1;
                    // A failed tab may have left its context behind.
                    self.request_replacement(RestartReason::Stuck);
                    if failed == MAX_FAILED_TABS || !self.is_responsive().await {
                        return self.mark_hung();
                    }
                }
            }
        }
    }
}
