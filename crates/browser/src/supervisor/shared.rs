//! What a grab asks of the supervisor: a tab, and an honest word about how it ended.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use grabd_domain::grabs::{Failure, FailureReason};
use grabd_domain::render::{RenderError, RenderTask};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::browser::{Browser, Wear, Why};
use super::first;
use super::lease::Lease;
use super::start::StartError;
use crate::Options;
use crate::jail::{Jail, Launcher};
use crate::page::{self, Ended, Limits, Picture};
use crate::process::{
    self, Cgroup, Cgroups, Owner, RunDir, RunDirError, can_enter, find_executable, remove_leftovers, short_name,
};
use crate::proxy::{self, Proxy};

/// Grabs for each slot that a worn browser may still make until its successor has started.
const GRABS_BEYOND: usize = 8;

/// The share of our descriptors that the sockets of one browser's jail may take: two browsers live at a time, for a
/// moment, and most of the rest are callers' connections.
const SHARE_OF_DESCRIPTORS: u64 = 8;

/// No jail has more sockets than this: they are made while a browser starts, and a grab may wait for that.
const MOST_SOCKETS: u64 = 4096;

/// How long a grab whose time is over waits for word whether its browser hangs.
const LAST_QUESTION: Duration = Duration::from_secs(2);

/// How the browsers are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Process ids of the running browsers: one, more while one replaces another or a grab has one of its own.
    pub pids: Vec<u32>,
    /// Contexts that wait for a grab.
    pub ready_contexts: usize,
    /// Slots that wait for a grab.
    pub free_slots: usize,
    /// Name and version of the browser that takes new grabs; none while it is replaced.
    pub version: Option<String>,
    /// Processes of the running browsers, when they were last counted, which is once a second.
    pub processes: usize,
    /// Memory that would come free with their end, in bytes, when it was last looked at.
    pub memory_bytes: u64,
    /// How often a browser was replaced, by reason: `died`, `hung`, `stuck`, `grabs`, `age`, `memory`.
    pub restarts: BTreeMap<&'static str, u64>,
}

impl Health {
    /// Browsers that are running.
    pub fn browsers(&self) -> usize {
        self.pids.len()
    }
}

/// What every start of a browser needs.
pub(super) struct Setup {
    pub(super) executable: PathBuf,
    pub(super) owner: Owner,
    pub(super) proxy: Proxy,
    pub(super) tracker: TaskTracker,
    pub(super) wear: Wear,
    /// Jails browsers; none when they run without.
    pub(super) launcher: Option<Launcher>,
    /// Grabs that a browser makes at most, from its start until its successor's.
    pub(super) grabs_of_a_life: usize,
    /// Sockets that are made for one jail at most.
    pub(super) max_sockets: usize,
    run_dir: RunDir,
    cgroups: Option<Cgroups>,
    limits: process::Limits,
    started: AtomicU64,
}

/// Shared by all clones of a [`Chromium`](crate::Chromium).
pub(crate) struct Shared {
    pub(super) setup: Setup,
    pub(super) spare_contexts: usize,
    pub(crate) shutdown: CancellationToken,
    /// The browser that takes new grabs; none while it is replaced.
    pub(super) current: watch::Sender<Option<Arc<Browser>>>,
    pub(super) failed: watch::Sender<Option<StartError>>,
    /// Are they jailed?
    pub(crate) jail: Jail,
    slots: Semaphore,
    limits: Limits,
    restarts: Mutex<BTreeMap<Why, u64>>,
    running: Mutex<Vec<Arc<Browser>>>,
}

impl Setup {
    /// Checks and clears the ground: program, user, directory, and nothing left of an earlier run.
    async fn new(
        options: &Options,
        guard: grabd_egress::Guard,
        shutdown: &CancellationToken,
    ) -> Result<Self, StartError> {
        let executable = find_executable(options.executable.as_deref(), "").ok_or(StartError::NoExecutable)?;
        let owner = Owner::find(options.user.as_ref())?;
        for former in &options.former_run_dirs {
            clear_former(former).await;
        }
        let failed = |reason: String| StartError::RunDir { path: options.run_dir.clone(), reason };
        let run_dir = RunDir::take(&options.run_dir).map_err(|error| failed(error.to_string()))?;
        can_enter(owner, run_dir.path()).map_err(StartError::Barred)?;
        remove_leftovers(run_dir.path()).await.map_err(|error| failed(error.to_string()))?;
        let cgroups = set_up_cgroups(run_dir.path()).await;
        let limits = process::Limits { memory_bytes: options.memory_limit_bytes, tasks: options.process_limit };
        let tracker = TaskTracker::new();
        let proxy = Proxy::new(guard, proxy::Options::default(), tracker.clone(), shutdown.clone());
        let wear = Wear {
            grabs: options.recycle_after.max(1),
            age: options.recycle_age,
            rss_bytes: options.recycle_rss_bytes,
            memory_limit_bytes: options.memory_limit_bytes,
        };
        let grabs = usize::try_from(wear.grabs).unwrap_or(usize::MAX);
        Ok(Self {
            executable,
            owner,
            proxy,
            tracker,
            wear,
            launcher: None,
            grabs_of_a_life: grabs.saturating_add(GRABS_BEYOND * options.slots),
            max_sockets: max_sockets(options),
            run_dir,
            cgroups,
            limits,
            started: AtomicU64::new(0),
        })
    }

    /// A directory that no browser had yet.
    pub(super) fn next_directory(&self) -> PathBuf {
        self.run_dir.path().join(format!("browser-{}", self.started.fetch_add(1, Ordering::Relaxed)))
    }

    /// Puts a new browser's process into a control group of its own, where there are any. One that does not get its group
    /// after all is watched as where there are none.
    pub(super) async fn put_into_cgroup(&self, name: &OsStr, pid: u32) -> Option<Cgroup> {
        let cgroup = match self.cgroups.as_ref()?.make(name, self.limits) {
            Ok(cgroup) => cgroup,
            Err(why) => {
                tracing::warn!(%why, browser.pid = pid, "a browser gets no control group");
                return None;
            }
        };
        if let Err(why) = cgroup.adopt(pid) {
            tracing::warn!(%why, browser.pid = pid, "a browser cannot be put into its control group");
            cgroup.end().await;
            return None;
        }
        Some(cgroup)
    }
}

impl Shared {
    /// Prepares everything and starts the first browser.
    pub(crate) async fn start(options: Options, guard: grabd_egress::Guard) -> Result<Arc<Self>, StartError> {
        let shutdown = CancellationToken::new();
        let mut setup = Setup::new(&options, guard, &shutdown).await?;
        let (browser, jail) = first::start(&mut setup, &options).await?;
        let shared = Arc::new(Self {
            setup,
            jail,
            spare_contexts: options.spare_contexts,
            shutdown,
            current: watch::Sender::new(None),
            failed: watch::Sender::new(None),
            slots: Semaphore::new(options.slots.max(1)),
            limits: Limits { settle_budget: options.settle_budget, full_page_max_height: options.full_page_max_height },
            restarts: Mutex::default(),
            running: Mutex::default(),
        });
        shared.running().push(browser.clone());
        shared.current.send_replace(Some(browser.clone()));
        shared.setup.tracker.spawn(shared.clone().keep(browser));
        Ok(shared)
    }

    /// One attempt at a grab.
    pub(crate) async fn render(self: &Arc<Self>, task: &RenderTask, deadline: Instant) -> Result<Picture, RenderError> {
        let late = |what: &str| RenderError::Lost(format!("no {what} in time"));
        let slot = timeout_at(deadline, self.slots.acquire()).await.map_err(|_| late("slot came free"))?;
        let _slot = slot.map_err(|_| late("slot was left"))?;
        match task.alone {
            true => self.render_alone(task, deadline).await,
            false => {
                let lease = timeout_at(deadline, self.lease()).await.map_err(|_| late("browser was ready"))??;
                self.render_in(&lease, task, deadline).await
            }
        }
    }

    /// In a browser of its own, whose death is then the page's own doing.
    async fn render_alone(self: &Arc<Self>, task: &RenderTask, deadline: Instant) -> Result<Picture, RenderError> {
        let starting = timeout_at(deadline, self.start_browser(1, 1)).await;
        let browser = match starting {
            Ok(Ok(browser)) => Lonely { browser, shared: self.clone() },
            Ok(Err(error)) => return Err(RenderError::Lost(error.to_string())),
            Err(_) => return Err(RenderError::Lost("no browser started in time".into())),
        };
        let lost = || RenderError::Lost("a fresh browser was not ready in time".into());
        let lease = timeout_at(deadline, browser.browser.lease()).await.ok().flatten().ok_or_else(lost)?;
        match self.render_in(&lease, task, deadline).await {
            Err(RenderError::Lost(why)) => {
                tracing::warn!(why, "a grab in a browser of its own was lost");
                let message = match browser.browser.client.closed().is_cancelled() || lease.tab().has_crashed() {
                    true => "The page crashed the browser.",
                    false => "The page could not be captured.",
                };
                let failure = Failure::new(FailureReason::RenderFailed, message);
                Err(RenderError::Page { facts: page::facts_of_failure(lease.tab(), &failure), failure })
            }
            ended => ended,
        }
    }

    async fn render_in(&self, lease: &Lease, task: &RenderTask, deadline: Instant) -> Result<Picture, RenderError> {
        let tab = lease.tab();
        let failure = match timeout_at(deadline, page::capture(tab, &task.spec, self.limits, deadline)).await {
            Ok(Ok(picture)) => return Ok(picture),
            Ok(Err(Ended::Lost(why))) => return Err(RenderError::Lost(why)),
            Ok(Err(Ended::Page(failure))) => failure,
            // A page that keeps itself busy is not a browser that hangs, but only the browser can say so.
            Err(_) => match timeout(LAST_QUESTION, lease.browser().answers()).await {
                Ok(true) if lease.browser().draws().await => Failure::new(
                    FailureReason::RenderFailed,
                    format!("The page did not finish within {} s.", task.budget.as_secs_f32().round()),
                ),
                Ok(_) => {
                    lease.browser().give_up();
                    return Err(RenderError::Lost("the browser does not answer".into()));
                }
                // Not hung as far as anybody knows, and not the page's fault either.
                Err(_) => return Err(RenderError::Lost("the browser does not answer in time".into())),
            },
        };
        Err(RenderError::Page { facts: page::facts_of_failure(tab, &failure), failure })
    }

    /// A tab of the current browser. A browser that dies before it lent one is no loss.
    pub(crate) async fn lease(&self) -> Result<Lease, RenderError> {
        let mut current = self.current.subscribe();
        loop {
            let browser = match current.wait_for(Option::is_some).await {
                Ok(browser) => browser.clone(),
                Err(_) => None,
            };
            let Some(browser) = browser else { return Err(RenderError::Lost("there is no browser".into())) };
            if let Some(lease) = browser.lease().await {
                return Ok(lease);
            }
            // The keeper takes a dead browser away; until then the same one would be found again.
            let gone = |now: &Option<Arc<Browser>>| now.as_ref().is_none_or(|now| !Arc::ptr_eq(now, &browser));
            if current.wait_for(gone).await.is_err() {
                return Err(RenderError::Lost("there is no browser".into()));
            }
        }
    }

    /// Starts a browser and counts it as running.
    pub(super) async fn start_browser(&self, spare: usize, grabs: usize) -> Result<Arc<Browser>, StartError> {
        let browser = Browser::start(&self.setup, spare, grabs).await?;
        self.running().push(browser.clone());
        Ok(browser)
    }

    /// Closes a browser in the background, once the tabs it lent are back when it can still work.
    pub(super) fn retire(self: &Arc<Self>, browser: Arc<Browser>, why: Why) {
        let shared = self.clone();
        self.setup.tracker.spawn(async move { shared.end(&browser, why.may_finish()).await });
    }

    /// Closes a browser, after the tabs it lent are back when `may_finish`.
    pub(super) async fn end(&self, browser: &Browser, may_finish: bool) {
        browser.lent.close();
        if may_finish {
            // Every grab has its own deadline, and the service's end is everybody's.
            self.shutdown.run_until_cancelled(browser.lent.wait()).await;
        }
        browser.close().await;
        self.running().retain(|running| running.pid() != browser.pid());
    }

    pub(super) fn count_restart(&self, why: Why) {
        *self.restarts.lock().unwrap_or_else(PoisonError::into_inner).entry(why).or_default() += 1;
    }

    /// How the browsers are.
    pub(crate) fn health(&self) -> Health {
        let restarts = self.restarts.lock().unwrap_or_else(PoisonError::into_inner);
        let current = self.current.borrow();
        let running = self.running();
        let usage = running.iter().map(|browser| browser.usage());
        Health {
            pids: running.iter().map(|browser| browser.pid()).collect(),
            processes: usage.clone().map(|usage| usage.processes).sum(),
            memory_bytes: usage.map(|usage| usage.memory_bytes).sum(),
            ready_contexts: current.as_ref().map_or(0, |browser| browser.pool.len()),
            free_slots: self.slots.available_permits(),
            version: current.as_ref().map(|browser| browser.product.clone()),
            restarts: restarts.iter().map(|(why, count)| (why.as_str(), *count)).collect(),
        }
    }

    /// Resolves when browsers can no longer be started.
    pub(crate) async fn failed(&self) -> StartError {
        let mut failed = self.failed.subscribe();
        match failed.wait_for(Option::is_some).await.map(|failed| failed.clone()) {
            Ok(Some(error)) => error,
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }

    /// Ends everything and waits for it.
    pub(crate) async fn shut_down(&self) {
        self.shutdown.cancel();
        self.setup.tracker.close();
        self.setup.tracker.wait().await;
        // Empty by now; one that is not is cleared by the next start.
        drop(tokio::fs::remove_dir(self.setup.run_dir.path()).await);
        if let Some(cgroups) = &self.setup.cgroups {
            cgroups.remove();
        }
    }

    fn running(&self) -> MutexGuard<'_, Vec<Arc<Browser>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A browser for one grab: closed in the background, also when the grab is dropped.
struct Lonely {
    browser: Arc<Browser>,
    shared: Arc<Shared>,
}

impl Drop for Lonely {
    fn drop(&mut self) {
        self.shared.retire(self.browser.clone(), Why::Grabs);
    }
}

/// At least enough for a tab at every slot, whatever the system grants.
fn max_sockets(options: &Options) -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    let share = usize::try_from((limit / SHARE_OF_DESCRIPTORS).min(MOST_SOCKETS)).unwrap_or(usize::MAX);
    share.max(2 * (options.slots + options.spare_contexts) + 1)
}

/// Ends what is left of an earlier run elsewhere. None of it stands in the way of this one.
async fn clear_former(path: &Path) {
    let cleared = match RunDir::take_existing(path) {
        Ok(held) => match remove_leftovers(held.path()).await {
            Ok(()) => tokio::fs::remove_dir(held.path()).await,
            failed => failed,
        },
        // Nobody can live in a directory that is gone, or that somebody else made in its place.
        Err(RunDirError::Io(_) | RunDirError::Held | RunDirError::Foreign(_)) => return,
    };
    match cleared {
        Ok(()) => tracing::info!(path = %path.display(), "removed what was left of an earlier run"),
        Err(error) => {
            tracing::warn!(%error, path = %path.display(), "what is left of an earlier run cannot be removed");
        }
    }
}

/// Says once at start when the kernel does not keep the browsers' limits, and why.
async fn set_up_cgroups(run_dir: &Path) -> Option<Cgroups> {
    match Cgroups::set_up(&short_name(run_dir)).await {
        Ok(cgroups) => Some(cgroups),
        Err(why) => {
            tracing::warn!(%why, "browsers run without control groups: their memory is watched instead, their processes are not counted");
            None
        }
    }
}
