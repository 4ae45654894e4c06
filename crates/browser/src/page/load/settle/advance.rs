//! Lets the time of a page pass while something changes its image.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::cdp::CallError;
use crate::page::context::CaptureContext;
use crate::page::error::CaptureError;
use crate::page::findings::state::PageState;
use crate::page::load::watch::WaitLimit;
use crate::page::script;

/// The time that passes after a response has arrived, and the maximum number of repetitions: charts are animated for a
/// second or more.
pub(in crate::page) const ARRIVAL_TIME: Duration = Duration::from_millis(1500);
const MAX_ARRIVALS: u32 = 5;

/// A page that changed within this time counts as changing, and how much longer it may do so.
const CALM_TIME: Duration = Duration::from_millis(200);
const MAX_EXTRA_TIME: Duration = Duration::from_secs(2);

/// The time between two frames of a page that changes, and of one that does not. Some scripts count frames. Scripts that
/// animate by the time since their last frame treat a gap of half a second as a pause.
const SHORT_STEP: Duration = Duration::from_millis(16);
const LONG_STEP: Duration = Duration::from_millis(350);

/// In real time, a page without activity for this long is ready.
pub(super) const QUIET_TIME: Duration = Duration::from_millis(150);

/// The time within which a response is drawn.
pub(super) const DRAW_TIME: Duration = Duration::from_millis(150);

/// If nothing arrives for this long, pending requests are checked: they may be for images out of view.
pub(super) const REST_CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Waits until no pending request can change the image, or until `until`. Returns false if the time was up first.
pub(in crate::page) async fn requests_ended(
    context: &CaptureContext<'_>,
    until: Instant,
    wait_limit: WaitLimit,
) -> bool {
    let watch = &context.tab.watch;
    loop {
        let check_by = (Instant::now() + REST_CHECK_INTERVAL).min(until);
        if watch.at_rest(check_by, wait_limit).await {
            return true;
        }
        if Instant::now() >= until {
            return false;
        }
        ignore_hidden_requests(context).await;
    }
}

/// Like [`at_rest`], for a page that was at rest when it had started `starts` requests: if there was none since, there is
/// nothing to wait for.
pub(in crate::page) async fn at_rest_since(
    context: &CaptureContext<'_>,
    until: Instant,
    starts: u64,
) -> Result<bool, CaptureError> {
    if context.tab.watch.read(|seen| seen.starts == starts && seen.requests.is_empty()) {
        return Ok(true);
    }
    at_rest(context, until).await
}

/// Like [`requests_ended`], but also waits until the responses are drawn and the requests that follow from them have
/// ended.
pub(in crate::page) async fn at_rest(context: &CaptureContext<'_>, until: Instant) -> Result<bool, CaptureError> {
    loop {
        if !requests_ended(context, until, WaitLimit::Short).await {
            return Ok(false);
        }
        if !context.clock.advance(DRAW_TIME).await?.has_request {
            return Ok(true);
        }
    }
}

/// A page whose time was advanced.
pub(in crate::page) struct Advanced {
    /// Its state.
    pub(in crate::page) state: PageState,
    /// False if it was still changing.
    pub(in crate::page) is_calm: bool,
}

/// Advances the time of a page that has just loaded, and further while that changes the page. `None` if the real time is up
/// first.
pub(in crate::page) async fn advance_until_calm(
    context: &CaptureContext<'_>,
    until: Instant,
    time: Duration,
) -> Result<Option<Advanced>, CaptureError> {
    // A page that changed while it was loading counts as changing.
    advance_while_changing(context, until, time, 0).await
}

/// Like [`advance_until_calm`], for a page that had settled before.
pub(in crate::page) async fn advance_settled(
    context: &CaptureContext<'_>,
    until: Instant,
    time: Duration,
) -> Result<Option<PageState>, CaptureError> {
    let changes = observe(context).await?.count;
    let advanced = advance_while_changing(context, until, time, changes).await?;
    Ok(advanced.map(|advanced| advanced.state))
}

async fn advance_while_changing(
    context: &CaptureContext<'_>,
    until: Instant,
    time: Duration,
    mut changes: u64,
) -> Result<Option<Advanced>, CaptureError> {
    let _fast = context.clock.draw_fast();
    let mut time = if context.clock.is_virtual() { time } else { time.min(QUIET_TIME) };
    // The frame after the first step is the first that shows the page as it is now: what comes into view is loaded then.
    let (mut passed, mut changed_at, mut step, mut arrivals) = (Duration::ZERO, Duration::ZERO, SHORT_STEP, 0);
    let began = Instant::now();
    loop {
        let advanced = context.clock.advance(step).await?;
        // The time of a busy page passes more slowly than real time.
        passed = (passed + step).max(began.elapsed());
        if advanced.has_request {
            if !requests_ended(context, until, WaitLimit::Short).await {
                return Ok(None);
            }
            arrivals += 1;
            if arrivals <= MAX_ARRIVALS {
                time = time.max(passed + ARRIVAL_TIME);
            }
        }
        let observed = observe(context).await?;
        let before = std::mem::replace(&mut changes, observed.count);
        // Drawing on a canvas does not change the document.
        let is_changing = changes != before || (observed.draws && advanced.has_damage);
        if is_changing {
            changed_at = passed;
        }
        if Instant::now() >= until {
            return Ok(None);
        }
        let is_calm = passed >= changed_at + CALM_TIME || (!is_changing && !context.clock.is_virtual());
        if passed >= time && (is_calm || passed >= time + MAX_EXTRA_TIME) {
            return Ok(read_state(context).await?.map(|state| Advanced { state, is_calm }));
        }
        // Animations by script need frames at short intervals.
        step = if is_changing || !context.clock.is_virtual() { SHORT_STEP } else { LONG_STEP };
    }
}

#[derive(Default, Deserialize)]
pub(super) struct Changes {
    /// The number of changes of the document.
    pub(super) count: u64,
    /// True if the page may draw without changing the document.
    draws: bool,
    /// The page's clock in milliseconds.
    now: f64,
}

/// Observes what has changed. Nothing if the document was replaced.
pub(super) async fn observe(context: &CaptureContext<'_>) -> Result<Changes, CaptureError> {
    let changes: Changes = match script::call(context.tab, context.remaining(), "changes", &()).await {
        Err(CallError::Refused { .. }) => return Ok(Changes::default()),
        changes => changes?.unwrap_or_default(),
    };
    context.clock.correct(changes.now).await;
    Ok(changes)
}

/// If only images and frames are pending, those that the image does not show are no longer waited for.
pub(in crate::page) async fn ignore_hidden_requests(context: &CaptureContext<'_>) {
    let watch = &context.tab.watch;
    let now = Instant::now();
    let Some(urls) = watch.read(|seen| seen.requests.only_images_and_frames(now)) else { return };
    let arguments = IrrelevantArguments { urls: &urls, whole: context.spec.full_page };
    let found = script::call::<Vec<String>>(context.tab, context.remaining(), "irrelevant", &arguments).await;
    // A page that does not answer keeps all of its requests.
    if let Ok(Some(irrelevant)) = found {
        watch.set_irrelevant(&irrelevant);
    }
}

#[derive(Serialize)]
struct IrrelevantArguments<'a> {
    urls: &'a [String],
    whole: bool,
}

/// Finishes the animations of the page and returns its state. `None` if the page does not answer in time.
pub(in crate::page) async fn read_state(context: &CaptureContext<'_>) -> Result<Option<PageState>, CaptureError> {
    let _fast = context.clock.draw_fast();
    call_script(context, "settled", &()).await
}

/// Calls a script. `None` if it ended early, because the document was replaced.
pub(super) async fn call_script<T: DeserializeOwned>(
    context: &CaptureContext<'_>,
    function: &str,
    arguments: &impl Serialize,
) -> Result<Option<T>, CaptureError> {
    match script::call(context.tab, context.remaining(), function, arguments).await {
        Err(CallError::Refused { message, .. }) => {
            tracing::debug!(message, "a script ended early");
            Ok(None)
        }
        state => Ok(state?),
    }
}
