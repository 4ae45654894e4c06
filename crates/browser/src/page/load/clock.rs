//! The virtual clock of a page, and its frames.
//!
//! Many pages change some time after they have loaded: after a timer, or during an animation. Waiting for that in real
//! time would slow down every grab, and most pages do not change at all. Once a page has loaded, its clock is therefore
//! advanced ([`Clock::advance`]): the browser runs all timers that are due and draws frames, as if the time had passed.
//!
//! An advanced clock stops, and frames that are drawn on demand are not drawn by themselves. [`Clock::run`] advances
//! the clock and draws frames at the speed of real time, so that other waits see the page as a user would.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use chromiumoxide::cdp::browser_protocol::emulation::{SetVirtualTimePolicyParams, VirtualTimePolicy};
use chromiumoxide::cdp::browser_protocol::headless_experimental::{BeginFrameParams, ScreenshotParams};
use rustix::time::{ClockId, clock_gettime};
use serde::Deserialize;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use crate::cdp::{CallError, RawResult};
use crate::page::error::{CaptureError, UNRESPONSIVE};
use crate::page::load::frame_drawing::{Frames, OnDemand};
use crate::page::load::stuck::{SLOW, Stuck, unless_stuck};
use crate::page::tab::Tab;

/// The time between two frames.
const FRAME_INTERVAL: Duration = Duration::from_millis(16);

/// The time between two frames while a script of ours waits for frames.
const FAST_FRAME_INTERVAL: Duration = Duration::from_millis(1);

/// The number of tasks that may run before virtual time advances. Without a limit, a page that always queues another
/// task would stop its clock.
const MAX_TASKS: i64 = 1000;

/// Advancing the clock takes a few milliseconds, unless the page has a lot to do in that time.
const ADVANCE_LIMIT: Duration = Duration::from_millis(500);

/// How long virtual time is paused while a request is open. A slower response arrives while time passes, as it does for
/// a user.
const PAUSE_LIMIT: Duration = Duration::from_millis(300);

/// The most virtual time that passes at once while the clock follows real time. The clock of a busy page may fall
/// behind.
const FOLLOW_LIMIT: Duration = Duration::from_millis(50);

/// The number of frames in a row that are not displayed while a script of ours scrolls. Animations run and images are
/// decoded without display, but paint timing and the frames of workers need it (Chromium 156).
const MAX_HIDDEN_FRAMES: u32 = 3;

/// If a page cannot be drawn, a frame takes until its time has come in real time. After this many such frames in a row,
/// the page counts as one that cannot be drawn. A slow frame that ends earlier only shows that the machine is busy.
const IDLE_FRAME: Duration = Duration::from_millis(30);
const MAX_IDLE_FRAMES: u32 = 6;

/// The kind of time that a page runs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeMode {
    /// Virtual time, which can be advanced.
    Virtual,
    /// Real time. For pages that wait for their clock, and for browsers that draw by a timer, where animation frames do
    /// not follow virtual time.
    Real,
}

/// What happened while the clock was advanced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::page) struct Advanced {
    /// The page started a request in that time.
    pub(in crate::page) has_request: bool,
    /// The frame at the end differs from the one before. False if the browser draws frames by itself.
    pub(in crate::page) has_damage: bool,
}

/// The clock of one page.
pub(in crate::page) struct Clock<'a> {
    tab: &'a Tab,
    mode: TimeMode,
    state: Mutex<State>,
    /// The number of callers whose scripts wait for frames.
    draws_fast: AtomicU32,
    /// The number of callers whose scripts scroll.
    scrolls: AtomicU32,
    /// The number of callers whose scripts wait for answers from outside of the page.
    asks: AtomicU32,
    /// The number of callers that do not need the page: its time stands still, and nothing is drawn.
    rests: AtomicU32,
    /// Whether the clock was ever advanced.
    is_advanced: AtomicBool,
}

/// Only the holder of this advances the clock and draws.
#[derive(Default)]
struct State {
    /// The start of virtual time, in milliseconds of the browser's clock. `None` before the first advance.
    base_ms: Option<f64>,
    /// Virtual time since then.
    elapsed_ms: f64,
    /// The time of the last frame, on the browser's clock.
    last_frame_ms: f64,
    /// When the clock was last advanced.
    advanced_at: Option<Instant>,
    /// Consecutive frames that took long and changed nothing.
    idle_frames: u32,
    /// Consecutive frames that were not displayed.
    hidden_frames: u32,
    /// Virtual time that was granted and has not passed yet.
    grant: Option<Grant>,
    /// A grant that the browser has not answered yet.
    unanswered: Option<UnansweredGrant>,
    /// The page's own clock when it was first read, and `elapsed_ms` at that moment.
    anchor_ms: Option<(f64, f64)>,
}

impl State {
    /// Waits for the answer to a grant, if one is missing. If this is dropped, the next caller waits for it.
    async fn wait_for_answer(&mut self) -> Result<(), CallError> {
        let Some(UnansweredGrant { grant, answer }) = &mut self.unanswered else { return Ok(()) };
        let (grant, answer) = (*grant, answer.await);
        self.unanswered = None;
        let set = answer?;
        // Another document may be in another process, where virtual time begins again.
        if self.base_ms.is_none_or(|base| (base - set.virtual_time_ticks_base).abs() > 1.0) {
            (self.base_ms, self.elapsed_ms, self.anchor_ms) = (Some(set.virtual_time_ticks_base), 0.0, None);
        }
        self.grant = Some(grant);
        Ok(())
    }
}

/// Whether a frame is displayed after the page's callbacks and its layout.
#[derive(Clone, Copy)]
enum Display {
    Shown,
    Hidden,
}

#[derive(Clone, Copy)]
struct Grant {
    duration: Duration,
    /// It has passed when this many grants have expired.
    number: u64,
    at: Instant,
}

/// A grant whose answer is awaited. The function that waits for it is dropped when the page navigates, but the browser
/// carries out the grant: after it, the page's time stops, also for the next document, until more is granted. So the answer
/// must not be lost.
struct UnansweredGrant {
    grant: Grant,
    answer: Pin<Box<dyn Future<Output = Result<PolicyResult, CallError>> + Send>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameResult {
    #[serde(default)]
    has_damage: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PolicyResult {
    virtual_time_ticks_base: f64,
}

impl<'a> Clock<'a> {
    pub(in crate::page) fn new(tab: &'a Tab, mode: TimeMode) -> Self {
        let mode = match tab.frames {
            Frames::OnDemand(_) => mode,
            Frames::Timer => TimeMode::Real,
        };
        Self {
            tab,
            mode,
            state: Mutex::default(),
            draws_fast: AtomicU32::default(),
            scrolls: AtomicU32::default(),
            asks: AtomicU32::default(),
            rests: AtomicU32::default(),
            is_advanced: AtomicBool::default(),
        }
    }

    /// Returns true if the clock can be advanced.
    pub(in crate::page) fn is_virtual(&self) -> bool {
        self.mode == TimeMode::Virtual
    }

    /// Whether virtual time was ever used. The times of documents that came later are not those of reality.
    pub(in crate::page) fn has_advanced(&self) -> bool {
        self.is_advanced.load(Ordering::Relaxed)
    }

    /// The error for a page whose frames cannot be drawn.
    pub(in crate::page) fn not_drawn(&self) -> CaptureError {
        match self.is_advanced.load(Ordering::Relaxed) {
            true => CaptureError::NeedsRealTime,
            false => CaptureError::failed(UNRESPONSIVE),
        }
    }

    /// The error for a frame that the browser lost. The page is captured again, in real time and then by a browser that draws by
    /// a timer. Frames of pages with workers are lost again, since the frames of a worker's canvas are the cause.
    fn frame_lost(&self) -> CaptureError {
        tracing::debug!("the browser lost a frame");
        match self.is_virtual() && !self.tab.watch.read(|seen| seen.has_workers(Instant::now())) {
            true => CaptureError::NeedsRealTime,
            false => CaptureError::NeedsTimer,
        }
    }

    /// Advances the page's time by `time` and draws a frame. In real time, it takes that long.
    ///
    /// # Errors
    /// When the page does not answer.
    pub(in crate::page) async fn advance(&self, time: Duration) -> Result<Advanced, CaptureError> {
        let watch = &self.tab.watch;
        let starts = watch.read(|seen| seen.starts);
        let result = |has_damage| Advanced { has_request: watch.read(|seen| seen.starts) > starts, has_damage };
        if self.mode == TimeMode::Real {
            // The time that the page is given.
            sleep(time).await;
            return Ok(result(false));
        }
        let mut state = self.state.lock().await;
        // Time is paused while requests are open, except for requests that are not waited for any more.
        let (policy, until) = match watch.read(|seen| seen.requests.is_empty()) {
            true => (VirtualTimePolicy::PauseIfNetworkFetchesPending, Instant::now() + ADVANCE_LIMIT),
            false => (VirtualTimePolicy::Advance, Instant::now()),
        };
        let passing = async {
            self.wait_for_missing_answer(&mut state).await;
            if let Some(grant) = state.grant {
                watch.until(until, |seen| (seen.grants_expired >= grant.number).then_some(())).await;
                self.finish_grant(&mut state).await?;
            }
            if state.grant.is_none() {
                self.grant(&mut state, policy, time).await?;
            }
            let number = state.grant.map_or(0, |grant| grant.number);
            let until = Instant::now() + ADVANCE_LIMIT;
            watch.until(until, |seen| (seen.grants_expired >= number || seen.starts > starts).then_some(())).await;
            self.record_expired(&mut state);
            let has_damage = self.step(&mut state).await?;
            state.advanced_at = Some(Instant::now());
            Ok(has_damage)
        };
        let has_damage = passing.await.map_err(|error| match matches!(error, CallError::Timeout(_)) {
            true => CaptureError::NeedsRealTime,
            false => error.into(),
        })?;
        match state.idle_frames < MAX_IDLE_FRAMES {
            true => Ok(result(has_damage)),
            false => Err(CaptureError::NeedsRealTime),
        }
    }

    /// Corrects the clock with the page's own clock, in milliseconds. While the page waits for a response, less time
    /// passes than was granted, and the browser delays a frame whose time the page has not reached.
    pub(in crate::page) async fn correct(&self, page_ms: f64) {
        let mut state = self.state.lock().await;
        match state.anchor_ms {
            // The clock of another document begins at zero.
            Some((first, elapsed_ms)) if page_ms >= first => state.elapsed_ms = elapsed_ms + (page_ms - first),
            Some(_) | None => state.anchor_ms = Some((page_ms, state.elapsed_ms)),
        }
    }

    /// Draws a frame and returns its image, if requested.
    ///
    /// # Errors
    /// When the page does not answer.
    pub(in crate::page) async fn draw(
        &self,
        frames: &OnDemand,
        screenshot: Option<ScreenshotParams>,
    ) -> Result<RawResult, CallError> {
        let mut state = self.state.lock().await;
        self.wait_for_missing_answer(&mut state).await;
        if state.hidden_frames > 0 {
            // The changes of frames that are not displayed are missing from the image of the next one (Chromium 156).
            self.frame(&mut state, frames, None, Display::Shown).await?;
        }
        self.frame(&mut state, frames, screenshot, Display::Shown).await
    }

    /// Draws frames more often until the result is dropped.
    pub(in crate::page) fn draw_fast(&self) -> DrawGuard<'_> {
        DrawGuard::count(&self.draws_fast)
    }

    /// Draws for a script that scrolls, until the result is dropped. With every frame, the time of a frame interval passes
    /// for the page, however soon it is drawn, so that the page has as much time at each position as for a user. Most frames
    /// are not displayed: the page is laid out and its callbacks run, which is what loads content, but no pixels are drawn.
    /// Displaying every frame takes 1.16 times the processor time for a page of 16,384 pixels.
    pub(in crate::page) fn draw_scrolling(&self) -> DrawGuard<'_> {
        DrawGuard::count(&self.scrolls)
    }

    /// Lets the page receive answers from outside, until the result is dropped: its time passes in small steps without frames.
    /// While time stands still, no answer reaches the page.
    pub(in crate::page) fn ask(&self) -> DrawGuard<'_> {
        DrawGuard::count(&self.asks)
    }

    /// Stops the page's time and its frames until the result is dropped: they would take processor time from work that does not
    /// need the page.
    pub(in crate::page) fn rest(&self) -> DrawGuard<'_> {
        DrawGuard::count(&self.rests)
    }

    /// Advances the clock and draws frames at the speed of real time, unless the browser does so itself. Returns when
    /// the page waits for its clock.
    pub(in crate::page) async fn run(&self) -> CaptureError {
        let Frames::OnDemand(_) = self.tab.frames else { return std::future::pending().await };
        let mut last = Instant::now();
        loop {
            // While a document is replaced, its process receives no commands.
            let is_left = || self.tab.watch.read(|seen| seen.navigation.is_some());
            let document = self.tab.watch.frame_and_loader();
            let stays = || self.tab.watch.frame_and_loader() == document && !is_left();
            let is_asking = self.asks.load(Ordering::Relaxed) > 0;
            let is_fast = is_asking || self.draws_fast.load(Ordering::Relaxed) > 0;
            let interval = if is_fast { FAST_FRAME_INTERVAL } else { FRAME_INTERVAL };
            // Until the next frame is due.
            sleep(interval).await;
            let now = Instant::now();
            if self.rests.load(Ordering::Relaxed) > 0 {
                last = now;
                continue;
            }
            let tick = async {
                let mut state = self.state.lock().await;
                // No more time is needed while the clock is being advanced. Also, the browser runs idle callbacks only
                // if time passes in large steps (Chromium 156).
                if is_left() || state.advanced_at.is_some_and(|at| at + interval > Instant::now()) {
                    return Ok::<(), CallError>(());
                }
                self.wait_for_missing_answer(&mut state).await;
                if state.base_ms.is_some() {
                    let passed = now - last;
                    let is_whole = self.scrolls.load(Ordering::Relaxed) > 0;
                    self.follow(&mut state, if is_whole { passed.max(FRAME_INTERVAL) } else { passed }).await?;
                    if is_asking {
                        return Ok(());
                    }
                }
                self.step(&mut state).await.map(drop)
            };
            match unless_stuck(self.tab.browser, tick).await {
                Ok(Ok(())) => {}
                Ok(Err(CallError::Timeout(_))) | Err(_) if self.has_advanced() && stays() => {
                    return CaptureError::NeedsRealTime;
                }
                // Another task reports the end of the browser.
                Ok(Err(CallError::Closed)) => return std::future::pending().await,
                // A page that waits for an answer to a request is drawn after it.
                Err(Stuck::Idle) if stays() && self.tab.watch.read(|seen| seen.requests.is_empty()) => {
                    return self.frame_lost();
                }
                Ok(Err(_)) | Err(_) => {}
            }
            last = now;
        }
    }

    /// Grants the page the time that has passed in reality.
    async fn follow(&self, state: &mut State, time: Duration) -> Result<(), CallError> {
        self.record_expired(state);
        match state.grant {
            Some(grant) if grant.at.elapsed() < PAUSE_LIMIT => Ok(()),
            Some(_) => self.finish_grant(state).await,
            None => {
                self.grant(state, VirtualTimePolicy::Advance, time.min(FOLLOW_LIMIT)).await?;
                self.wait_for_grant(state).await;
                Ok(())
            }
        }
    }

    async fn grant(&self, state: &mut State, policy: VirtualTimePolicy, duration: Duration) -> Result<(), CallError> {
        let number = self.tab.watch.read(|seen| seen.grants_expired) + 1;
        let params = SetVirtualTimePolicyParams {
            budget: Some(milliseconds(duration)),
            max_virtual_time_task_starvation_count: Some(MAX_TASKS),
            ..SetVirtualTimePolicyParams::new(policy)
        };
        let (client, session) = (self.tab.client.clone(), self.tab.session.clone());
        let answer = Box::pin(async move { client.call_as(SLOW, Some(&session), params).await });
        state.unanswered = Some(UnansweredGrant { grant: Grant { duration, number, at: Instant::now() }, answer });
        self.wait_for_answer(state).await
    }

    /// Waits for the answer to a grant whose caller was dropped, if there is one. An error concerns that caller only.
    async fn wait_for_missing_answer(&self, state: &mut State) {
        drop(self.wait_for_answer(state).await);
    }

    /// Waits for the answer to a grant, if one is missing, and records that the clock was advanced.
    async fn wait_for_answer(&self, state: &mut State) -> Result<(), CallError> {
        state.wait_for_answer().await?;
        self.is_advanced.fetch_or(state.base_ms.is_some(), Ordering::Relaxed);
        Ok(())
    }

    /// Lets the rest of the granted time pass, even while requests are open. *Why:* the browser keeps the end of every
    /// grant, and would stop a later grant at the end of this one (Chromium 156).
    async fn finish_grant(&self, state: &mut State) -> Result<(), CallError> {
        self.record_expired(state);
        let Some(grant) = state.grant else { return Ok(()) };
        self.set_policy(VirtualTimePolicy::Advance).await?;
        if self.tab.watch.read(|seen| seen.grants_expired >= grant.number) {
            // It had just expired, and time would now pass without a limit.
            self.set_policy(VirtualTimePolicy::Pause).await?;
        }
        self.wait_for_grant(state).await;
        Ok(())
    }

    async fn set_policy(&self, policy: VirtualTimePolicy) -> Result<(), CallError> {
        let params = SetVirtualTimePolicyParams::new(policy);
        self.tab.client.call_within(SLOW, Some(&self.tab.session), params).await.map(drop)
    }

    /// Waits until the granted time has passed, for a limited time.
    async fn wait_for_grant(&self, state: &mut State) {
        if let Some(grant) = state.grant {
            let until = Instant::now() + ADVANCE_LIMIT;
            self.tab.watch.until(until, |seen| (seen.grants_expired >= grant.number).then_some(())).await;
            self.record_expired(state);
        }
    }

    fn record_expired(&self, state: &mut State) {
        if let Some(grant) = state.grant
            && self.tab.watch.read(|seen| seen.grants_expired) >= grant.number
        {
            state.elapsed_ms += milliseconds(grant.duration);
            state.grant = None;
        }
    }

    /// Draws a frame without an image. Returns whether it differs from the one before, if it was displayed.
    async fn step(&self, state: &mut State) -> Result<bool, CallError> {
        let Frames::OnDemand(frames) = &self.tab.frames else { return Ok(false) };
        if !self.can_draw() {
            return Ok(false);
        }
        if self.scrolls.load(Ordering::Relaxed) > 0 && state.hidden_frames < MAX_HIDDEN_FRAMES {
            self.frame(state, frames, None, Display::Hidden).await?;
            return Ok(false);
        }
        let (began, is_virtual) = (Instant::now(), state.base_ms.is_some());
        let drawn = self.frame(state, frames, None, Display::Shown).await?;
        let has_damage = drawn.parse::<FrameResult>().is_ok_and(|drawn| drawn.has_damage);
        let is_late = began.elapsed() > IDLE_FRAME && browser_now_ms() >= state.last_frame_ms;
        let is_idle = is_virtual && !has_damage && is_late;
        state.idle_frames = if is_idle { state.idle_frames + 1 } else { 0 };
        Ok(has_damage)
    }

    /// Returns true if a frame of the current document can be drawn. Until the process of a new document has answered,
    /// the document has no surface, and if a frame is requested then, it never gets one: 3 of 100 documents were never
    /// drawn when the first frame was requested within 15 ms of the commit, 0 of 800 when it was requested after an
    /// answer (Chromium 156). Documents without a surface did not get one later either: not by page time, another size of
    /// the window, hiding and showing it, or frames in real time. Redirects by script happen around the load event, so
    /// only documents that load slowly are drawn before it.
    fn can_draw(&self) -> bool {
        let watch = &self.tab.watch;
        let has_answered = watch.world().is_some();
        has_answered
            && watch.read(|seen| seen.navigation.is_none() && (seen.loaded_at.is_some() || seen.loads_slowly()))
    }

    async fn frame(
        &self,
        state: &mut State,
        frames: &OnDemand,
        screenshot: Option<ScreenshotParams>,
        display: Display,
    ) -> Result<RawResult, CallError> {
        self.catch_up(state).await?;
        // No two frames may have the same time.
        let frame_time_ticks = state.base_ms.map(|base| (base + state.elapsed_ms).max(state.last_frame_ms + 0.01));
        let no_display_updates = match display {
            Display::Shown => None,
            Display::Hidden => Some(true),
        };
        state.hidden_frames = match display {
            Display::Shown => 0,
            Display::Hidden => state.hidden_frames + 1,
        };
        let frame = BeginFrameParams { frame_time_ticks, interval: None, no_display_updates, screenshot };
        let drawn = frames.draw(&self.tab.client, &self.tab.session, frame).await;
        state.last_frame_ms = frame_time_ticks.unwrap_or_else(browser_now_ms);
        drawn
    }

    /// The browser draws no frame whose time is before the last frame's. Virtual time that began before frames were
    /// drawn in real time is therefore advanced to the last one.
    async fn catch_up(&self, state: &mut State) -> Result<(), CallError> {
        let behind_ms = |state: &State| state.base_ms.map_or(0.0, |base| state.last_frame_ms - base - state.elapsed_ms);
        if behind_ms(state) < 1.0 {
            return Ok(());
        }
        self.finish_grant(state).await?;
        let gap_ms = behind_ms(state);
        if state.grant.is_none() && gap_ms > 0.0 {
            self.grant(state, VirtualTimePolicy::Advance, Duration::from_secs_f64(gap_ms / 1000.0)).await?;
            self.wait_for_grant(state).await;
        }
        Ok(())
    }
}

/// While this exists, time passes and frames are drawn as its caller asked for.
pub(in crate::page) struct DrawGuard<'a>(&'a AtomicU32);

impl<'a> DrawGuard<'a> {
    fn count(callers: &'a AtomicU32) -> Self {
        callers.fetch_add(1, Ordering::Relaxed);
        Self(callers)
    }
}

impl Drop for DrawGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The browser's clock in milliseconds: on Linux, the kernel's monotonic clock.
fn browser_now_ms() -> f64 {
    let now = clock_gettime(ClockId::Monotonic);
    milliseconds(Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0)))
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn answer_to_a_grant_is_kept_when_its_caller_is_dropped() {
        let (answers, answer) = oneshot::channel();
        let grant = Grant { duration: Duration::from_millis(50), number: 1, at: Instant::now() };
        let answer = Box::pin(async { answer.await.unwrap() });
        let mut state = State { unanswered: Some(UnansweredGrant { grant, answer }), ..State::default() };
        // The page navigates.
        tokio::select! {
            biased;
            _ = state.wait_for_answer() => panic!("there is no answer yet"),
            () = std::future::ready(()) => {}
        }
        answers.send(Ok(PolicyResult { virtual_time_ticks_base: 7.0 })).ok().unwrap();
        state.wait_for_answer().await.unwrap();
        assert_eq!((state.base_ms, state.grant.map(|grant| grant.number)), (Some(7.0), Some(1)));
        assert!(state.unanswered.is_none());
    }

    #[tokio::test]
    async fn refused_grant_is_forgotten() {
        let grant = Grant { duration: Duration::from_millis(50), number: 1, at: Instant::now() };
        let answer = Box::pin(std::future::ready(Err(CallError::Closed)));
        let mut state = State { unanswered: Some(UnansweredGrant { grant, answer }), ..State::default() };
        assert_eq!(state.wait_for_answer().await, Err(CallError::Closed));
        assert!(state.unanswered.is_none() && state.grant.is_none() && state.base_ms.is_none());
    }
}
