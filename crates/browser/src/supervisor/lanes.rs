//! Assigns browsers to grabs. A lane is a browser and the browsers that replace it. If frames are drawn on demand, a
//! browser draws one page at a time, so each slot has its own lane. Lanes start when they are first needed and stop
//! after an idle time. If a timer draws the frames, all slots share one lane.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::browser::Browser;
use crate::options::FrameMode;

/// A lane stops after it has been idle for this long.
const IDLE_LIMIT: Duration = Duration::from_mins(5);

/// The interval of checks for idle lanes.
const CHECK_INTERVAL: Duration = Duration::from_secs(30);

/// How long a grab waits for a lane whose last grab has ended, before another browser is started. Disposing of a page takes
/// milliseconds, and starting a browser a second.
const RETURN_WAIT: Duration = Duration::from_millis(250);

/// A browser and the browsers that replace it.
pub(super) struct Lane {
    /// The browser that takes new grabs. `None` while it is replaced and while the lane is stopped.
    pub(super) current: watch::Sender<Option<Arc<Browser>>>,
}

/// All lanes.
pub(super) struct Lanes {
    lanes: Vec<Lane>,
    /// One permit for each entry of `state.free`.
    free: Semaphore,
    state: Mutex<State>,
}

struct State {
    /// The lanes that can take a grab, and since when. A shared lane has one entry per free slot.
    free: Vec<(usize, Instant)>,
    /// Lanes without a browser. The first one is started next.
    stopped: VecDeque<usize>,
    /// The number of lanes whose grab has ended, but not everything of it.
    returning: usize,
    /// Cancelled when a lane is to stop.
    stops: Vec<CancellationToken>,
}

/// Reserves a lane for one grab until it is dropped.
pub(super) struct LaneGuard {
    lanes: Arc<Lanes>,
    lane: usize,
    is_returning: AtomicBool,
}

fn works(browser: &Option<Arc<Browser>>) -> bool {
    browser.as_ref().is_some_and(|browser| !browser.client.closed().is_cancelled())
}

impl Lane {
    /// Whether it has a browser that takes grabs.
    pub(super) fn works(&self) -> bool {
        works(&self.current.borrow())
    }

    /// Waits until it has a browser that takes grabs.
    pub(super) async fn replaced(&self) {
        // The sender is never dropped.
        let _ = self.current.subscribe().wait_for(works).await;
    }
}

impl Lanes {
    /// Creates the lanes. Only the first lane is started.
    pub(super) fn new(frames: FrameMode, slots: usize) -> Self {
        let slots = slots.max(1);
        let (lanes, guards) = match frames {
            FrameMode::OnDemand => (slots, 1),
            FrameMode::Timer => (1, slots),
        };
        let now = Instant::now();
        Self {
            lanes: (0..lanes).map(|_| Lane { current: watch::Sender::new(None) }).collect(),
            free: Semaphore::new(guards),
            state: Mutex::new(State {
                free: vec![(0, now); guards],
                stopped: (1..lanes).collect(),
                returning: 0,
                stops: (0..lanes).map(|_| CancellationToken::new()).collect(),
            }),
        }
    }

    pub(super) fn all(&self) -> &[Lane] {
        &self.lanes
    }

    pub(super) fn lane(&self, lane: usize) -> &Lane {
        &self.lanes[lane]
    }

    /// Cancelled when a lane is to stop.
    pub(super) fn stop_token(&self, lane: usize) -> CancellationToken {
        self.state().stops[lane].clone()
    }

    /// Waits for a lane that can take a grab. If none can, passes a stopped one to `start`. Cancel-safe.
    pub(super) async fn take(self: &Arc<Self>, start: impl FnOnce(usize)) -> Option<LaneGuard> {
        let now = match self.free.try_acquire() {
            Ok(permit) => Some(permit),
            Err(_) if self.state().returning > 0 => {
                timeout(RETURN_WAIT, self.free.acquire()).await.ok().and_then(Result::ok)
            }
            Err(_) => None,
        };
        let permit = match now {
            Some(permit) => permit,
            None => {
                if let Some(lane) = self.state().stopped.pop_front() {
                    start(lane);
                }
                self.free.acquire().await.ok()?
            }
        };
        permit.forget();
        // Take the lowest number, so that the higher ones become idle.
        let mut state = self.state();
        let first = state.free.iter().enumerate().min_by_key(|(_, (lane, _))| *lane).map(|(at, _)| at)?;
        let (lane, _) = state.free.swap_remove(first);
        Some(LaneGuard { lanes: self.clone(), lane, is_returning: AtomicBool::new(false) })
    }

    /// Records that a lane has its browser.
    pub(super) fn started(&self, lane: usize) {
        self.state().free.push((lane, Instant::now()));
        self.free.add_permits(1);
    }

    /// Records that a lane could not start a browser.
    pub(super) fn start_failed(&self, lane: usize) {
        self.state().stopped.push_front(lane);
    }

    /// Records that a lane's browser has ended.
    pub(super) fn stopped(&self, lane: usize) {
        let mut state = self.state();
        state.stops[lane] = CancellationToken::new();
        state.stopped.push_back(lane);
    }

    /// Stops idle lanes. Never returns.
    pub(super) async fn stop_idle(&self) {
        let mut checks = tokio::time::interval(CHECK_INTERVAL);
        loop {
            checks.tick().await;
            let mut state = self.state();
            let idle = |(lane, since): &(usize, Instant)| *lane > 0 && since.elapsed() >= IDLE_LIMIT;
            while let Some(at) = state.free.iter().position(idle) {
                // A missing permit belongs to a grab that is about to take a lane.
                let Ok(permit) = self.free.try_acquire() else { break };
                permit.forget();
                let (lane, _) = state.free.swap_remove(at);
                state.stops[lane].cancel();
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LaneGuard {
    /// The number of the lane.
    pub(super) fn lane(&self) -> usize {
        self.lane
    }

    /// Notes that the grab has ended, and the lane is about to be free.
    pub(super) fn begin_return(&self) {
        if !self.is_returning.swap(true, Ordering::Relaxed) {
            self.lanes.state().returning += 1;
        }
    }
}

impl Drop for LaneGuard {
    fn drop(&mut self) {
        let mut state = self.lanes.state();
        state.returning -= usize::from(self.is_returning.load(Ordering::Relaxed));
        state.free.push((self.lane, Instant::now()));
        drop(state);
        self.lanes.free.add_permits(1);
    }
}
