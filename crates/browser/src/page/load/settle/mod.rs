//! Waits until a page has settled: it is loaded, its fonts and the images in view are ready, and no pending activity
//! would change its image.

mod advance;

use std::future::pending;
use std::time::Duration;

use grabd_domain::capture::WaitUntil;
use grabd_domain::grabs::{SettledBy, Stage};
use serde::Serialize;
use tokio::time::{Instant, sleep_until, timeout_at};
use url::Url;

pub(in crate::page) use self::advance::{
    ARRIVAL_TIME, advance_settled, advance_until_calm, at_rest, at_rest_since, ignore_hidden_requests, read_state,
    requests_ended,
};
use self::advance::{DRAW_TIME, QUIET_TIME, REST_CHECK_INTERVAL, call_script, observe};
use crate::cdp::CallError;
use crate::page::context::CaptureContext;
use crate::page::error::CaptureError;
use crate::page::findings::state::{Content, PageState};
use crate::page::load::outside::{self, Use};
use crate::page::load::watch::{Document, WaitLimit, WatchState};
use crate::page::load::workers::{self, WorkerState};
use crate::page::script;

/// The result of waiting for a document.
pub(in crate::page) enum Settled {
    /// It can be captured.
    Ready(Ready),
    /// Another document replaces it.
    Left,
}

/// A document that can be captured.
pub(in crate::page) struct Ready {
    /// Why the wait ended.
    pub(in crate::page) by: SettledBy,
    /// Its state.
    pub(in crate::page) state: PageState,
}

/// A page that redirects itself within this time is followed. A later redirect is meant to let users read the page
/// first.
const MAX_REFRESH_DELAY: Duration = Duration::from_secs(4);

/// The time from a redirect until the next document is requested.
const REFRESH_SLACK: Duration = Duration::from_millis(200);

/// The time that passes for a loaded page. Most animations, redirects by script and late content start within it.
const LOADED_TIME: Duration = Duration::from_secs(1);

/// How long the results of workers are waited for, timers included. Virtual time does not apply to workers.
const WORKER_LIMIT: Duration = Duration::from_millis(1500);

/// How long a page with scripts may be empty, or show a splash screen or that it is loading, without any pending request.
/// It passes in few steps, unless the page changes. Scripts that hide a page until a test has been chosen for the visitor give
/// up after four seconds.
const APPEAR_LIMIT: Duration = Duration::from_secs(5);
const APPEAR_STEP: Duration = Duration::from_millis(2500);

/// How often answers of storage, encryption and service workers are waited for.
const MAX_ANSWERS: u32 = 6;

/// How long an incompletely loaded page is waited for.
const LAST_WAIT: Duration = Duration::from_secs(1);

/// The number of requests that a page may have open, and for how long, to count as idle.
const IDLE_REQUESTS: u32 = 2;
const IDLE_TIME: Duration = Duration::from_millis(500);

/// Waits until the document is ready or its time is up.
pub(in crate::page) async fn settle(
    context: &CaptureContext<'_>,
    document: &Document,
) -> Result<Settled, CaptureError> {
    if context.spec.wait_until == WaitUntil::Dom {
        return parsed(context, document).await;
    }
    let loaded = load(context, document).await?;
    if !matches!(loaded, ScriptResult::Left) {
        if context.tab.watch.read(|seen| seen.loaded_at.is_some()) {
            context.stages.reach(Stage::Loaded);
        }
        context.stages.reach(Stage::Settling);
    }
    let (state, until) = match loaded {
        ScriptResult::Left => return Ok(Settled::Left),
        ScriptResult::Done(state) if context.tab.watch.read(|seen| seen.loaded_at.is_some()) => {
            (state, settle_by(context))
        }
        // No load event follows.
        ScriptResult::Done(state) if context.tab.watch.read(|seen| seen.is_cut) => (state, settle_by(context)),
        // The requests that block the load event have had their time.
        ScriptResult::Done(state) => (state, (Instant::now() + LAST_WAIT).min(context.capture_by)),
        ScriptResult::TimeUp => {
            let state = PageState::default();
            return Ok(Settled::Ready(Ready { by: SettledBy::Deadline, state }));
        }
    };
    match context.spec.wait_until {
        WaitUntil::Auto | WaitUntil::Dom => {}
        WaitUntil::Load => return Ok(Settled::Ready(Ready { by: loaded_by(context), state })),
        WaitUntil::Idle => {
            return Ok(context.unless_replaced(document, idle(context)).await?.map_or(Settled::Left, Settled::Ready));
        }
    }
    let header_refresh = document.head.as_ref().and_then(|head| refresh(head.refresh.as_deref()?, &document.url));
    if state.still && header_refresh.is_none() {
        return Ok(Settled::Ready(Ready { by: SettledBy::Quiet, state }));
    }
    let settle_wait = SettleWait { context, until, header_refresh };
    match context.unless_replaced(document, settle_wait.wait(state)).await? {
        Some(ready) => Ok(Settled::Ready(ready)),
        None => Ok(Settled::Left),
    }
}

/// Why the wait for the load event ended.
fn loaded_by(context: &CaptureContext<'_>) -> SettledBy {
    match context.tab.watch.read(|seen| seen.loaded_at.is_some()) {
        true => SettledBy::Quiet,
        false => SettledBy::Deadline,
    }
}

/// Waits until the document is parsed, or until its time is up.
async fn parsed(context: &CaptureContext<'_>, document: &Document) -> Result<Settled, CaptureError> {
    let find = |seen: &mut WatchState| match seen.is_replaced(&document.loader) {
        true => Some(false),
        false => seen.parsed_at.is_some().then_some(true),
    };
    let by = match context.tab.watch.until(context.capture_by, find).await {
        Some(true) => SettledBy::Quiet,
        Some(false) => return Ok(Settled::Left),
        None => SettledBy::Deadline,
    };
    context.stages.reach(Stage::Settling);
    let time_up = sleep_until((Instant::now() + context.limits.settle_budget).min(context.capture_by));
    Ok(match ready(context, document, false, time_up).await? {
        ScriptResult::Done(state) => Settled::Ready(Ready { by, state }),
        ScriptResult::Left => Settled::Left,
        ScriptResult::TimeUp => Settled::Ready(Ready { by: SettledBy::Deadline, state: PageState::default() }),
    })
}

/// Waits until few requests have been open for a while. Returns the state of the page then.
async fn idle(context: &CaptureContext<'_>) -> Result<Ready, CaptureError> {
    let watch = &context.tab.watch;
    let is_busy = |seen: &mut WatchState| seen.requests.unsettled(Instant::now()) > IDLE_REQUESTS;
    let mut by = SettledBy::Deadline;
    while Instant::now() < context.capture_by {
        let end = Instant::now() + IDLE_TIME;
        if watch.until(end.min(context.capture_by), |seen| is_busy(seen).then_some(())).await.is_none() {
            // A body that has stopped arriving does not report that.
            by = if end <= context.capture_by { SettledBy::Quiet } else { SettledBy::Deadline };
            break;
        }
        let check_by = (Instant::now() + REST_CHECK_INTERVAL).min(context.capture_by);
        watch.until(check_by, |seen| (!is_busy(seen)).then_some(())).await;
    }
    Ok(Ready { by, state: read_state(context).await?.unwrap_or_default() })
}

/// Waits until the page has settled after it was changed.
pub(in crate::page) async fn settle_again(context: &CaptureContext<'_>) -> Result<(), CaptureError> {
    settle_within(context, context.limits.settle_budget).await
}

/// The same, for no longer than `limit`.
pub(in crate::page) async fn settle_within(context: &CaptureContext<'_>, limit: Duration) -> Result<(), CaptureError> {
    let until = (Instant::now() + limit.min(context.limits.settle_budget)).min(context.capture_by);
    at_rest(context, until).await?;
    advance_until_calm(context, until, ARRIVAL_TIME).await?;
    Ok(())
}

/// The time limit of settling: the settle budget after the load event, and early enough to take the image.
pub(in crate::page) fn settle_by(context: &CaptureContext<'_>) -> Instant {
    let loaded_at = context.tab.watch.read(|seen| seen.loaded_at).unwrap_or_else(Instant::now);
    (loaded_at + context.limits.settle_budget).min(context.capture_by)
}

/// Waits until `until`. Returns false if the document was replaced before.
pub(in crate::page) async fn stay_until(context: &CaptureContext<'_>, document: &Document, until: Instant) -> bool {
    let left = context.tab.watch.until(until, |seen| seen.is_replaced(&document.loader).then_some(()));
    timeout_at(until, left).await.ok().flatten().is_none()
}

/// The result of waiting for a script.
enum ScriptResult {
    Done(PageState),
    Left,
    TimeUp,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReadyArguments {
    wait_for_load: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DurationArguments {
    for_ms: u64,
}

impl DurationArguments {
    fn time(time: Duration) -> Self {
        Self { for_ms: script::millis(time) }
    }
}

/// Waits until the document is loaded, or until the rest of it is no longer expected.
async fn load(context: &CaptureContext<'_>, document: &Document) -> Result<ScriptResult, CaptureError> {
    let step = ready(context, document, true, load_or_stall(context)).await?;
    match step {
        // The load event did not come, or a resource did not. Continue with what was received.
        ScriptResult::TimeUp if context.tab.watch.read(|seen| seen.parsed_at.is_some() || seen.is_cut) => {
            ready(context, document, false, sleep_until(settle_by(context))).await
        }
        ScriptResult::Done(state) => {
            // The script has waited for the load event. The browser's report may be on its way.
            context.tab.watch.set_loaded();
            Ok(ScriptResult::Done(state))
        }
        step @ (ScriptResult::Left | ScriptResult::TimeUp) => Ok(step),
    }
}

/// Runs the script that waits for the page until it returns, the document is replaced, or time is up.
async fn ready(
    context: &CaptureContext<'_>,
    document: &Document,
    wait_for_load: bool,
    time_up: impl Future<Output = ()>,
) -> Result<ScriptResult, CaptureError> {
    let left = context.tab.watch.until(context.deadline, |seen| seen.is_replaced(&document.loader).then_some(()));
    let report = async {
        match script::call::<PageState>(context.tab, context.remaining(), "ready", &ReadyArguments { wait_for_load })
            .await
        {
            Ok(state) => Ok(ScriptResult::Done(state.unwrap_or_default())),
            // The document was replaced, which the caller notices by itself.
            Err(CallError::Refused { message, .. }) => {
                tracing::debug!(message, "a script ended early");
                pending().await
            }
            Err(error) => Err(error.into()),
        }
    };
    tokio::select! {
        biased;
        Some(()) = left => Ok(ScriptResult::Left),
        step = report => step,
        () = time_up => Ok(ScriptResult::TimeUp),
    }
}

/// Returns when the settle budget after the load event is over, or when the load event is no longer expected: its time
/// is over, no relevant request is pending, or nothing makes progress.
async fn load_or_stall(context: &CaptureContext<'_>) {
    let watch = &context.tab.watch;
    let progress = |seen: &WatchState| seen.requests.progress_at.max(seen.parsed_at);
    loop {
        let now = Instant::now();
        let (is_loaded, is_cut, last, is_waiting) = watch.read(|seen| {
            let is_waiting = seen.parsed_at.is_none() || seen.requests.hold(WaitLimit::Short, now).is_some();
            (seen.loaded_at.is_some(), seen.is_cut, progress(seen).unwrap_or(now), is_waiting)
        });
        if is_cut {
            return;
        }
        if is_loaded {
            context.stages.reach(Stage::Loaded);
            return sleep_until(settle_by(context)).await;
        }
        let limit = last + if is_waiting { context.limits.settle_budget } else { REST_CHECK_INTERVAL };
        if now >= limit.min(context.load_by()) {
            return;
        }
        let next = if now < last + REST_CHECK_INTERVAL { last + REST_CHECK_INTERVAL } else { limit };
        let happened = |seen: &mut WatchState| {
            (seen.loaded_at.is_some() || seen.is_cut || progress(seen) > Some(last)).then_some(())
        };
        if watch.until(next.min(context.load_by()), happened).await.is_none() && is_waiting {
            ignore_hidden_requests(context).await;
        }
    }
}

/// The wait of a loaded document for the end of all activity.
struct SettleWait<'a> {
    context: &'a CaptureContext<'a>,
    /// The time limit.
    until: Instant,
    /// The time after which the document's `Refresh` header redirects the page.
    header_refresh: Option<Duration>,
}

/// What was waited for already.
#[derive(Default)]
struct Waited {
    limit: WaitLimit,
    for_workers: bool,
    for_content: bool,
    /// True if the page changes all the time, such as one with an endless animation.
    is_restless: bool,
    /// How often answers of storage, encryption and service workers were waited for.
    answers: u32,
    /// The number of changes when they had answered last.
    answered_at: Option<u64>,
    /// True if they had not when their time was up.
    is_unanswered: bool,
}

impl SettleWait<'_> {
    /// Waits until nothing is expected that could change the image.
    async fn wait(self, mut state: PageState) -> Result<Ready, CaptureError> {
        let Self { context, until, .. } = self;
        let ready = |by, state| Ok(Ready { by, state });
        let mut waited = Waited::default();
        let refresh = self.header_refresh.or(state.refreshes_after()).filter(|after| *after <= MAX_REFRESH_DELAY);
        let mut time = refresh.map_or(LOADED_TIME, |after| LOADED_TIME.max(after + REFRESH_SLACK));
        loop {
            let changes = state.changes;
            let is_over = !requests_ended(context, until, waited.limit).await;
            let played = if is_over { None } else { advance_until_calm(context, until, time).await? };
            state = match played {
                Some(advanced) => {
                    waited.is_restless |= !advanced.is_calm;
                    advanced.state
                }
                None => return ready(SettledBy::Deadline, read_state(context).await?.unwrap_or_default()),
            };
            match self.expects(&state, changes, &mut waited).await? {
                Some(next) => time = next,
                None => {
                    state.is_unanswered = waited.is_unanswered && state.is_loading();
                    return ready(SettledBy::Quiet, state);
                }
            }
        }
    }

    /// Looks for what may still change the image, and waits for what happens outside of the page's time. Returns the time
    /// to advance the page by before it is looked at again; `None` if nothing is expected.
    async fn expects(
        &self,
        state: &PageState,
        changes: u64,
        waited: &mut Waited,
    ) -> Result<Option<Duration>, CaptureError> {
        let (context, watch) = (self.context, &self.context.tab.watch);
        let (data, messages) = watch.read(|seen| (seen.requests.awaits_data(), seen.requests.awaits_messages()));
        // If the first message changed nothing, the content comes with another one.
        let has_only_greeting = state.changes == changes && watch.read(|seen| seen.requests.has_messages());
        // What a worker requests is not for later: it draws maps and fills tables.
        let has_workers = watch.read(|seen| seen.has_workers(Instant::now()));
        let awaits_data = data && (state.is_loading() || has_workers);
        let awaits = awaits_data || (messages && expects_content(state)) || has_only_greeting;
        if waited.limit == WaitLimit::Short && awaits {
            waited.limit = WaitLimit::Long;
            return Ok(Some(ARRIVAL_TIME));
        }
        if !waited.for_workers && has_workers {
            waited.for_workers = true;
            if self.workers_may_have_answered(state).await? {
                return Ok(Some(ARRIVAL_TIME));
            }
        }
        if !waited.for_content && (expects_content(state) || may_be_splash(state)) {
            waited.for_content = true;
            if self.content_appears(state.changes).await? && !(waited.is_restless && self.shows_as_little().await?) {
                return Ok(Some(ARRIVAL_TIME));
            }
        }
        if watch.read(|seen| seen.requests.hold(waited.limit, Instant::now())).is_some() {
            return Ok(Some(ARRIVAL_TIME));
        }
        if state.scripted && waited.answers < MAX_ANSWERS {
            let changes = (!waited.is_restless).then_some(state.changes);
            let found = outside::look(context, changes, may_be_splash(state)).await?;
            let has_answered = waited.answered_at == Some(state.changes);
            if found == Use::Active || (found == Use::Exists && !has_answered) {
                waited.answers += 1;
                waited.answered_at = Some(state.changes);
                waited.is_unanswered = !outside::answered(context, self.until).await?;
                return Ok(Some(DRAW_TIME));
            }
        }
        Ok(None)
    }

    /// Lets time pass for content that may appear. Returns whether the page has changed, or started a request.
    async fn content_appears(&self, changes: u64) -> Result<bool, CaptureError> {
        let mut passed = Duration::ZERO;
        while passed < APPEAR_LIMIT && Instant::now() < self.until {
            // In real time, it would take as long.
            let step = if self.context.clock.is_virtual() { APPEAR_STEP } else { QUIET_TIME };
            passed += step;
            let advanced = self.context.clock.advance(step).await?;
            if advanced.has_request || observe(self.context).await?.count != changes {
                return Ok(true);
            }
            if !self.context.clock.is_virtual() {
                break;
            }
        }
        Ok(false)
    }

    /// Whether the page still looks as if content were to come: an endless animation changes it, too.
    async fn shows_as_little(&self) -> Result<bool, CaptureError> {
        let state = read_state(self.context).await?;
        Ok(state.is_some_and(|state| expects_content(&state) || may_be_splash(&state)))
    }

    /// Waits until the workers are not computing anything and have no timers. If the page shows that it is loading, a worker may
    /// also wait for something else, and the next change of the page is waited for. Returns false if the workers were idle.
    async fn workers_may_have_answered(&self, state: &PageState) -> Result<bool, CaptureError> {
        let began = Instant::now();
        let workers = workers::wait_until_idle(self.context, WORKER_LIMIT).await?;
        if state.is_loading() {
            let left = WORKER_LIMIT.saturating_sub(began.elapsed());
            call_script::<serde_json::Value>(self.context, "nextChange", &DurationArguments::time(left)).await?;
            return Ok(true);
        }
        Ok(workers == WorkerState::WereBusy)
    }
}

/// Returns true if the page looks as if content were about to appear.
fn expects_content(state: &PageState) -> bool {
    match state.content {
        _ if state.busy => true,
        Content::Full => false,
        Content::Sparse => state.scripted,
        Content::Empty => state.scripted && !state.page_background,
    }
}

/// Returns true if the page may be a splash screen, which another one follows.
fn may_be_splash(state: &PageState) -> bool {
    state.scripted && (state.one_screen || state.content == Content::Empty)
}

/// The time after which the value of a `Refresh` header redirects a page to another URL.
fn refresh(value: &str, document: &str) -> Option<Duration> {
    let (seconds, target) = value.split_once([';', ','])?;
    let target = target.trim();
    let target = match target.get(..3) {
        Some(word) if word.eq_ignore_ascii_case("url") => target[3..].trim_start().strip_prefix('=')?,
        Some(_) | None => target,
    };
    let target = target.trim().trim_matches(['"', '\'']);
    let document = Url::parse(document).ok()?;
    let goes_elsewhere = document.join(target).is_ok_and(|url| url != document);
    let seconds = seconds.trim().parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())?;
    goes_elsewhere.then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refresh_header_is_parsed_like_in_browsers() {
        let page = "https://a.example/page";
        for (value, seconds) in [
            ("0;url=/next", Some(0.0)),
            ("3; URL='https://b.example/'", Some(3.0)),
            ("1.5, /next", Some(1.5)),
            ("5", None),
            ("5;url=/page", None),
            ("x;url=/next", None),
            ("-1;url=/next", None),
            ("", None),
        ] {
            assert_eq!(refresh(value, page).map(|after| after.as_secs_f64()), seconds, "{value}");
        }
    }
}
