//! The interface of the supervisor: renders grabs in leased tabs and classifies failures.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use grabd_domain::faults::ErrorCause;
use grabd_domain::grabs::{Failure, FailureReason};
use grabd_domain::render::{Capture, RenderError, RenderTask};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::browser::Browser;
use super::first_browser;
use super::lanes::Lanes;
use super::lease::Lease;
use super::occupancy::{Occupancy, Successors};
use super::restart::RestartReason;
use super::setup::Setup;
use super::start::StartError;
use crate::Options;
use crate::jail::Jail;
use crate::options::FrameMode;
use crate::page::{self, CaptureError, Excess, Limits, TimeMode, UNRESPONSIVE};

/// How long a timed-out grab waits to learn whether its browser hangs.
const RESPONSE_CHECK_LIMIT: Duration = Duration::from_secs(2);

/// A page is captured again in real time only if this much time is left.
const MIN_RETRY_TIME: Duration = Duration::from_secs(3);

/// The state of the browsers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Process ids of the running browsers: one for each slot in use, or one for all slots, and more while one replaces
    /// another or a grab has its own browser.
    pub pids: Vec<u32>,
    /// Prepared contexts.
    pub ready_contexts: usize,
    /// Free slots.
    pub free_slots: usize,
    /// Name and version of the browser that takes new grabs. `None` while it is replaced.
    pub version: Option<String>,
    /// Processes of the running browsers at the last measurement, which is made once a second.
    pub processes: usize,
    /// Memory that ending them would free, in bytes, at the last measurement.
    pub memory_bytes: u64,
    /// The number of browser replacements by reason: `died`, `hung`, `excess`, `stuck`, `grabs`, `age`, `memory`.
    pub restarts: BTreeMap<&'static str, u64>,
}

impl Health {
    /// The number of running browsers.
    pub fn browsers(&self) -> usize {
        self.pids.len()
    }
}

/// Shared by all clones of a [`Chromium`](crate::Chromium).
pub(crate) struct Shared {
    pub(super) setup: Setup,
    pub(super) spare_contexts: usize,
    pub(crate) shutdown: CancellationToken,
    /// The browsers that take new grabs.
    pub(super) lanes: Arc<Lanes>,
    pub(super) failed: watch::Sender<Option<StartError>>,
    /// Whether browsers are jailed.
    pub(crate) jail: Jail,
    slots: Arc<Semaphore>,
    limits: Limits,
    restarts: Mutex<BTreeMap<RestartReason, u64>>,
    running: Mutex<Vec<Arc<Browser>>>,
}

impl Shared {
    /// Prepares the setup and starts the first browser.
    pub(crate) async fn start(options: Options, guard: grabd_egress::Guard) -> Result<Arc<Self>, StartError> {
        let shutdown = CancellationToken::new();
        let mut setup = Setup::new(&options, guard, &shutdown).await?;
        let (browser, jail) = first_browser::start(&mut setup, &options).await?;
        let shared = Arc::new(Self {
            setup,
            jail,
            spare_contexts: options.spare_contexts,
            shutdown,
            lanes: Arc::new(Lanes::new(options.frames, options.slots)),
            failed: watch::Sender::new(None),
            slots: Arc::new(Semaphore::new(options.slots.max(1))),
            limits: Limits {
                settle_budget: options.settle_budget,
                full_page_max_height: options.full_page_max_height,
                image_max_bytes: options.image_max_bytes,
                memory: options.memory,
                respect_opt_out: options.respect_opt_out,
                lists: options.lists,
                proxy_tls: options.proxy_tls,
            },
            restarts: Mutex::default(),
            running: Mutex::default(),
        });
        shared.running().push(browser.clone());
        shared.lanes.lane(0).current.send_replace(Some(browser.clone()));
        shared.setup.tracker.spawn(shared.clone().supervise(0, browser));
        let idle = shared.clone();
        shared.setup.tracker.spawn(async move {
            idle.shutdown.run_until_cancelled(idle.lanes.stop_idle()).await;
        });
        Ok(shared)
    }

    /// Makes one attempt at a grab.
    pub(crate) async fn render(self: &Arc<Self>, task: &RenderTask, deadline: Instant) -> Result<Capture, RenderError> {
        let timed_out = |what: &str| RenderError::Lost(format!("no {what} in time"));
        let slot = self.slots.clone().acquire_owned();
        let slot = timeout_at(deadline, slot).await.map_err(|_| timed_out("free slot"))?;
        let slot = slot.map_err(|_| timed_out("open slot"))?;
        let occupancy = Occupancy::new(self.successors(), slot, task.slot.clone());
        if task.alone {
            return self.render_in_dedicated_browser(task, Arc::new(occupancy), deadline).await;
        }
        let start = |lane| drop(self.setup.tracker.spawn(self.clone().start_lane(lane)));
        let guard = timeout_at(deadline, self.lanes.take(start)).await.ok().flatten();
        let occupancy = Arc::new(occupancy.in_lane(guard.ok_or_else(|| timed_out("free browser"))?));
        let lease = || async {
            let leased = timeout_at(deadline, self.lease(occupancy.lane())).await;
            Ok::<_, RenderError>(leased.map_err(|_| timed_out("ready browser"))??.of_grab(&occupancy))
        };
        let rendered = self.render_with(lease, task, &occupancy, deadline).await;
        occupancy.grab_ended();
        rendered
    }

    /// Renders in a dedicated browser. If that browser dies, the page is the cause.
    async fn render_in_dedicated_browser(
        self: &Arc<Self>,
        task: &RenderTask,
        occupancy: Arc<Occupancy>,
        deadline: Instant,
    ) -> Result<Capture, RenderError> {
        let mut browser = self.start_dedicated_browser(self.setup.frames, &occupancy, deadline).await?;
        let mut lease = browser.lease(deadline).await?;
        let mut rendered = self.render_in(&lease, task, TimeMode::Virtual, deadline).await;
        if matches!(rendered, Err(CaptureError::NeedsRealTime)) && Instant::now() + MIN_RETRY_TIME < deadline {
            lease.returned().await;
            if browser.browser.client.closed().is_cancelled() {
                browser = self.start_dedicated_browser(self.setup.frames, &occupancy, deadline).await?;
            }
            lease = browser.lease(deadline).await?;
            rendered = self.render_in(&lease, task, TimeMode::Real, deadline).await;
        }
        if matches!(rendered, Err(CaptureError::NeedsTimer)) && Instant::now() + MIN_RETRY_TIME < deadline {
            lease.returned().await;
            drop(browser);
            return self.render_by_timer(task, &occupancy, deadline).await;
        }
        browser.result(rendered, &lease)
    }

    /// Renders in a dedicated browser that draws by a timer, for a page that is not drawn on demand.
    async fn render_by_timer(
        self: &Arc<Self>,
        task: &RenderTask,
        occupancy: &Arc<Occupancy>,
        deadline: Instant,
    ) -> Result<Capture, RenderError> {
        tracing::info!(grab.id = %task.id, "a page is not drawn on demand; capturing it in a browser that draws by a timer");
        let browser = self.start_dedicated_browser(FrameMode::Timer, occupancy, deadline).await?;
        let lease = browser.lease(deadline).await?;
        let rendered = self.render_in(&lease, task, TimeMode::Real, deadline).await;
        browser.result(rendered, &lease)
    }

    async fn start_dedicated_browser(
        self: &Arc<Self>,
        frames: FrameMode,
        occupancy: &Arc<Occupancy>,
        deadline: Instant,
    ) -> Result<DedicatedBrowser, RenderError> {
        match timeout_at(deadline, self.start_browser(frames, 1, 1)).await {
            Ok(Ok(browser)) => Ok(DedicatedBrowser { browser, shared: self.clone(), occupancy: occupancy.clone() }),
            Ok(Err(error)) => Err(RenderError::Lost(error.to_string())),
            Err(_) => Err(RenderError::Lost("no browser started in time".into())),
        }
    }

    /// Renders in a tab from `lease`. A page that does not work in virtual time gets a second tab, in real time, and one that is
    /// not drawn on demand another browser.
    async fn render_with<L>(
        self: &Arc<Self>,
        lease: impl Fn() -> L,
        task: &RenderTask,
        occupancy: &Arc<Occupancy>,
        deadline: Instant,
    ) -> Result<Capture, RenderError>
    where
        L: Future<Output = Result<Lease, RenderError>>,
    {
        let mut leased = lease().await?;
        let mut rendered = self.render_in(&leased, task, TimeMode::Virtual, deadline).await;
        if matches!(rendered, Err(CaptureError::NeedsRealTime)) && Instant::now() + MIN_RETRY_TIME < deadline {
            tracing::info!(grab.id = %task.id, "a page does not work in virtual time; capturing it again in real time");
            leased.returned().await;
            leased = lease().await?;
            rendered = self.render_in(&leased, task, TimeMode::Real, deadline).await;
        }
        if matches!(rendered, Err(CaptureError::NeedsTimer)) && Instant::now() + MIN_RETRY_TIME < deadline {
            leased.returned().await;
            return self.render_by_timer(task, occupancy, deadline).await;
        }
        let failure = match rendered {
            Ok(image) => return Ok(image),
            Err(CaptureError::Lost(why)) => return Err(RenderError::Lost(why)),
            // The page may be fine: another attempt has more time.
            Err(CaptureError::NeedsTimer) => return Err(RenderError::Lost("the page is not drawn on demand".into())),
            Err(CaptureError::Page(failure)) => failure,
            Err(CaptureError::NeedsRealTime) => Failure::new(FailureReason::RenderFailed, UNRESPONSIVE),
        };
        Err(RenderError::Page { metadata: Box::new(page::failure_metadata(leased.tab(), &failure)), failure })
    }

    async fn render_in(
        &self,
        lease: &Lease,
        task: &RenderTask,
        time: TimeMode,
        deadline: Instant,
    ) -> Result<Capture, CaptureError> {
        let browser = lease.browser();
        let capture = page::capture(lease.tab(), task, self.limits.clone(), time, deadline);
        let taken = async {
            lease.tab().watch.until(deadline, |seen| seen.has_image.then_some(())).await;
            lease.request_replacement();
            std::future::pending::<Infallible>().await
        };
        let ended = tokio::select! {
            // First: a capture begins with forgetting what the tab did before.
            biased;
            ended = timeout_at(deadline, capture) => ended,
            never = taken => match never {},
        };
        let has_image = matches!(ended, Ok(Ok(_)));
        let has_many_workers = lease.tab().watch.read(|seen| seen.excess == Some(Excess::Workers));
        let has_excess = has_many_workers || lease.tab().has_crashed() || browser.exceeded().is_some();
        if browser.is_exclusive && has_excess {
            // Nothing else is lost, and disposing of the page may take long.
            browser.end_at_once(RestartReason::Excess);
        }
        let is_stuck = !has_image && !has_excess && lease.tab().frames.are_stuck().await;
        let result = match ended {
            Ok(ended) => ended,
            Err(_) => self.timed_out(browser, task, is_stuck).await,
        };
        let result = match (result, browser.exceeded()) {
            // What the loss looks like depends on when it was noticed.
            (Err(CaptureError::Lost(_)), Some(exceeded)) => Err(exceeded.into()),
            (result, _) => result,
        };
        if is_stuck {
            // Replace the browser, so that the next grab gets one that draws.
            browser.mark_hung();
        }
        result
    }

    /// The result of a grab that did not end in time. A frame that is stuck waits for the page.
    async fn timed_out(&self, browser: &Browser, task: &RenderTask, is_stuck: bool) -> Result<Capture, CaptureError> {
        // A busy page does not mean that the browser hangs, so ask the browser.
        match timeout(RESPONSE_CHECK_LIMIT, browser.is_responsive()).await {
            Ok(true) if is_stuck || browser.can_draw().await => {
                let message = format!("The page did not finish within {} s.", task.time_limit().as_secs_f32().round());
                // A grab that waited for long has a short budget, for which its page is not to blame.
                let cause = Failure::timeout_cause(task.budget, task.spec.render_budget());
                Err(CaptureError::Page(Failure::new(FailureReason::RenderFailed, message).caused_by(cause)))
            }
            Ok(_) => {
                browser.mark_hung();
                Err(CaptureError::Lost("the browser does not answer".into()))
            }
            // It is unknown whether the browser hangs, and the page is not to blame.
            Err(_) => Err(CaptureError::Lost("the browser does not answer in time".into())),
        }
    }

    /// Leases a tab of a lane's current browser. If that browser dies first, waits for the next one.
    pub(crate) async fn lease(&self, lane: usize) -> Result<Lease, RenderError> {
        let mut current = self.lanes.lane(lane).current.subscribe();
        loop {
            let browser = match current.wait_for(Option::is_some).await {
                Ok(browser) => browser.clone(),
                Err(_) => None,
            };
            let Some(browser) = browser else { return Err(RenderError::Lost("there is no browser".into())) };
            if let Some(lease) = browser.lease().await {
                return Ok(lease);
            }
            // Until the supervisor removes the dead browser, the same one would be returned again.
            let gone = |now: &Option<Arc<Browser>>| now.as_ref().is_none_or(|now| !Arc::ptr_eq(now, &browser));
            if current.wait_for(gone).await.is_err() {
                return Err(RenderError::Lost("there is no browser".into()));
            }
        }
    }

    /// Starts a browser and counts it as running.
    pub(super) async fn start_browser(
        &self,
        frames: FrameMode,
        spare: usize,
        grabs: usize,
    ) -> Result<Arc<Browser>, StartError> {
        let browser = Browser::start(&self.setup, frames, spare, grabs).await?;
        self.running().push(browser.clone());
        Ok(browser)
    }

    /// Closes a browser in the background, after its leased tabs are returned.
    pub(super) fn retire(self: &Arc<Self>, browser: Arc<Browser>) {
        let shared = self.clone();
        self.setup.tracker.spawn(async move { shared.end(&browser, true).await });
    }

    /// Closes a browser, after its leased tabs are returned if `may_finish`.
    pub(super) async fn end(&self, browser: &Browser, may_finish: bool) {
        browser.leased.close();
        if may_finish {
            // Grabs end at their deadline or at the shutdown.
            self.shutdown.run_until_cancelled(browser.leased.wait()).await;
        }
        browser.close().await;
        self.running().retain(|running| running.pid() != browser.pid());
    }

    pub(super) fn count_restart(&self, why: RestartReason) {
        *self.restarts.lock().unwrap_or_else(PoisonError::into_inner).entry(why).or_default() += 1;
    }

    /// The state of the browsers.
    pub(crate) fn health(&self) -> Health {
        let restarts = self.restarts.lock().unwrap_or_else(PoisonError::into_inner);
        let current: Vec<_> = self.lanes.all().iter().filter_map(|lane| lane.current.borrow().clone()).collect();
        let running = self.running();
        let usage = running.iter().map(|browser| browser.usage());
        Health {
            pids: running.iter().map(|browser| browser.pid()).collect(),
            processes: usage.clone().map(|usage| usage.processes).sum(),
            memory_bytes: usage.map(|usage| usage.memory_bytes).sum(),
            ready_contexts: current.iter().map(|browser| browser.pool.len()).sum(),
            free_slots: self.slots.available_permits(),
            version: current.first().map(|browser| browser.product.clone()),
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

    /// Ends all browsers and tasks and waits for them.
    pub(crate) async fn shut_down(&self) {
        self.shutdown.cancel();
        self.setup.tracker.close();
        self.setup.tracker.wait().await;
        self.setup.clear().await;
    }

    fn successors(&self) -> Successors {
        Successors { lanes: self.lanes.clone(), tracker: self.setup.tracker.clone(), shutdown: self.shutdown.clone() }
    }

    fn running(&self) -> MutexGuard<'_, Vec<Arc<Browser>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A browser for one grab, ended when dropped. The slot of the grab is in use until then.
struct DedicatedBrowser {
    browser: Arc<Browser>,
    shared: Arc<Shared>,
    occupancy: Arc<Occupancy>,
}

impl DedicatedBrowser {
    async fn lease(&self, deadline: Instant) -> Result<Lease, RenderError> {
        let leased = timeout_at(deadline, self.browser.lease()).await.ok().flatten();
        leased.ok_or_else(|| RenderError::Lost("a fresh browser was not ready in time".into()))
    }

    /// The result of a grab. Nothing but its page can be the cause if the browser dies.
    fn result(&self, rendered: Result<Capture, CaptureError>, lease: &Lease) -> Result<Capture, RenderError> {
        let failure = match rendered {
            Ok(image) => return Ok(image),
            Err(CaptureError::Page(failure)) => failure,
            Err(CaptureError::NeedsRealTime | CaptureError::NeedsTimer) => {
                Failure::new(FailureReason::RenderFailed, UNRESPONSIVE)
            }
            Err(CaptureError::Lost(why)) => {
                tracing::warn!(why, "a grab in a dedicated browser was lost");
                match self.browser.client.closed().is_cancelled() || lease.tab().has_crashed() {
                    true => Failure::new(FailureReason::RenderFailed, "The page crashed the browser."),
                    false => Failure::new(FailureReason::RenderFailed, "The page could not be captured.")
                        .caused_by(ErrorCause::Service),
                }
            }
        };
        Err(RenderError::Page { metadata: Box::new(page::failure_metadata(lease.tab(), &failure)), failure })
    }
}

impl Drop for DedicatedBrowser {
    fn drop(&mut self) {
        self.browser.end_at_once(RestartReason::Grabs);
        let (browser, shared, occupancy) = (self.browser.clone(), self.shared.clone(), self.occupancy.clone());
        self.shared.setup.tracker.spawn(async move {
            shared.end(&browser, false).await;
            drop(occupancy);
        });
    }
}
