//! Finds the elements that steps name, in the page and in its frames.

use std::sync::Arc;
use std::time::Duration;

use chromiumoxide::cdp::js_protocol::runtime::EvaluateParams;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::attach;
use crate::page::context::{CaptureContext, SCRIPT_GRACE};
use crate::page::error::CaptureError;
use crate::page::frame_calls::{Evaluated, FrameCalls, OnTimeout};
use crate::page::load::watch::{WatchState, World};
use crate::page::script::millis_until;
use crate::page::selectors::LIBRARY;

/// The name of the isolated world. Pages cannot see it.
const WORLD: &str = "grabd steps";

/// Between the selectors of frames and that of the element.
pub(in crate::page) const FRAME_SEPARATOR: &str = " >> ";

/// The most frames within each other.
const MAX_FRAMES: usize = 4;

/// The time until a frame whose document may have been replaced is looked at again.
const RETRY_AFTER: Duration = Duration::from_millis(50);

/// How much later than its time limit a call to a frame of another site may be answered: its timers may run once a second.
const FRAME_GRACE: Duration = Duration::from_millis(1500);

/// Why an element cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Problem {
    /// The selector is invalid.
    Invalid,
    /// Nothing matches.
    Missing,
    /// Nothing that matches is visible.
    Hidden,
    /// Another element is in front of it.
    Covered,
    /// It is disabled.
    Disabled,
    /// It is a field that cannot be changed.
    ReadOnly,
    /// It takes no text.
    NotField,
    /// It takes text of another form, such as a date.
    NotAccepted,
    /// It is no list.
    NotList,
    /// The list has no such option.
    NoOption,
    /// It is no frame.
    NotFrame,
    /// Its document is of another site.
    OtherSite,
    /// The page did not stay for long enough.
    Replaced,
}

/// What a function of `locate.js` returns.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Found {
    pub(super) problem: Option<Problem>,
    /// The point of the window where the element is.
    x: Option<f64>,
    y: Option<f64>,
    /// Whether the field takes a value instead of typed text.
    pub(super) is_value: bool,
    /// What covers the element.
    pub(super) by: Option<String>,
    /// What the page has instead of the element: what it is, how many there are, and the names of some.
    pub(super) noun: Option<String>,
    pub(super) count: u32,
    pub(super) names: Vec<String>,
    /// The frame that has the problem, if it is not the element.
    #[serde(skip)]
    pub(super) frame: Option<String>,
}

impl Found {
    fn with(problem: Problem) -> Self {
        Self { problem: Some(problem), ..Self::default() }
    }

    /// The point of the window where the element is.
    pub(super) fn point(&self) -> Option<(f64, f64)> {
        self.x.zip(self.y)
    }
}

/// The arguments of the functions. Each function takes some of them.
#[derive(Clone, Copy, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Arguments<'a> {
    pub(super) selector: &'a str,
    /// The text, or the option of a list.
    pub(super) text: &'a str,
    /// What the page may have instead: `buttons`, `fields` or `lists`. Empty: it is not reported.
    pub(super) kind: &'a str,
    /// Whether the element must be enabled.
    pub(super) enabled: bool,
    /// Whether something is dragged to the element, so that the page is scrolled only if that is necessary.
    pub(super) is_dragging: bool,
    /// What must not be in errors.
    pub(super) secrets: &'a [&'a str],
    pub(super) budget_ms: u64,
}

#[derive(Serialize)]
struct Point {
    x: f64,
    y: f64,
}

/// The frame that an element is in: the session of its process, and its isolated world.
pub(super) struct Place {
    /// `None` if it is in the process of the page.
    session: Option<Arc<str>>,
    world: World,
}

/// Calls a function with the element that a selector names, within the frames that it names before. Waits for it for up to
/// `limit`, which the arguments get as their budget.
///
/// # Errors
/// If the browser is gone, or the page does not respond.
pub(super) async fn find(
    context: &CaptureContext<'_>,
    function: &str,
    arguments: Arguments<'_>,
    limit: Duration,
) -> Result<(Found, Option<Place>), CaptureError> {
    let _fast = context.clock.draw_fast();
    let mut frames: Vec<&str> = arguments.selector.split(FRAME_SEPARATOR).map(str::trim).collect();
    let selector = frames.pop().unwrap_or_default();
    if frames.len() > MAX_FRAMES {
        return Ok((Found::with(Problem::Invalid), None));
    }
    find_within(context, &frames, function, Arguments { selector, ..arguments }, limit).await
}

/// Calls a function that names no frames.
///
/// # Errors
/// As [`find`].
pub(super) async fn find_in_page(
    context: &CaptureContext<'_>,
    function: &str,
    arguments: Arguments<'_>,
    limit: Duration,
) -> Result<Found, CaptureError> {
    let _fast = context.clock.draw_fast();
    find_within(context, &[], function, arguments, limit).await.map(|(found, _)| found)
}

async fn find_within(
    context: &CaptureContext<'_>,
    frames: &[&str],
    function: &str,
    arguments: Arguments<'_>,
    limit: Duration,
) -> Result<(Found, Option<Place>), CaptureError> {
    let until = (Instant::now() + limit).min(context.capture_by);
    let watch = &context.tab.watch;
    // A script can throw in a document without elements. It has some when it is parsed.
    let progress = |seen: &WatchState| (seen.committed_at, seen.parsed_at, seen.loaded_at);
    loop {
        let before = watch.read(progress);
        if let Some(found) = attempt(context, frames, function, arguments, until).await? {
            return Ok(found);
        }
        if Instant::now() >= until {
            return Ok((Found::with(Problem::Replaced), None));
        }
        // A document in a frame may have been replaced, or the frame may be gone: the watch records neither.
        let retry_at = if frames.is_empty() { until } else { until.min(Instant::now() + RETRY_AFTER) };
        watch.until(retry_at, |seen| (progress(seen) != before).then_some(())).await;
    }
}

/// `None` if a document was replaced meanwhile.
async fn attempt(
    context: &CaptureContext<'_>,
    frames: &[&str],
    function: &str,
    arguments: Arguments<'_>,
    until: Instant,
) -> Result<Option<(Found, Option<Place>)>, CaptureError> {
    let (main, _) = context.tab.watch.frame_and_loader();
    let Some(world) = calls(context, None, until).world(main).await? else { return Ok(None) };
    let mut place = Place { session: None, world };
    let mut parents = Vec::with_capacity(frames.len());
    for &frame in frames {
        let of_frame = Arguments { selector: frame, kind: "", budget_ms: millis_until(until), ..arguments };
        let in_frame = |found: Found| Some((Found { frame: Some(frame.to_owned()), ..found }, None));
        match call::<Found>(context, &place, until, "frame", &of_frame).await? {
            None => return Ok(None),
            Some(found) if found.problem.is_some() => return Ok(in_frame(found)),
            Some(_) => {}
        }
        let Some(id) = frame_id(context, &place, until).await? else { return Ok(None) };
        let Some(inner) = enter(context, place.session.as_ref(), &id, until).await? else {
            // A frame that gets another document may be in no process for a moment.
            let is_final = Instant::now() >= until;
            return Ok(if is_final { in_frame(Found::with(Problem::OtherSite)) } else { None });
        };
        parents.push((std::mem::replace(&mut place, inner), frame));
    }
    let arguments = Arguments { budget_ms: millis_until(until), ..arguments };
    let Some(mut found) = call::<Found>(context, &place, until, function, &arguments).await? else { return Ok(None) };
    // From the innermost frame to the window.
    for (parent, frame) in parents.into_iter().rev() {
        let Some((x, y)) = found.point() else { break };
        let at: Option<Found> = call(context, &parent, until, "framePoint", &Point { x, y }).await?;
        let Some(at) = at else { return Ok(None) };
        if at.problem.is_some() {
            return Ok(Some((Found { frame: Some(frame.to_owned()), ..at }, None)));
        }
        found = at;
    }
    Ok(Some((found, Some(place))))
}

/// The frame with this id, in the process of the document around it, or in one of its own. `None` if it is in neither.
async fn enter(
    context: &CaptureContext<'_>,
    around: Option<&Arc<str>>,
    frame: &str,
    until: Instant,
) -> Result<Option<Place>, CaptureError> {
    let session = around.map(|session| &**session);
    if let Some(world) = calls(context, session, until).world(frame.to_owned()).await? {
        return Ok(Some(Place { session: around.cloned(), world }));
    }
    let Some(session) = attach::session_of(context, frame).await? else { return Ok(None) };
    let world = calls(context, Some(&session), until).world(frame.to_owned()).await?;
    if world.is_none() {
        attach::leave(context, frame, &session);
    }
    Ok(world.map(|world| Place { session: Some(session), world }))
}

/// Calls a function that uses the element that was found. `None` if its document was replaced.
///
/// # Errors
/// As [`find`].
pub(super) async fn apply(
    context: &CaptureContext<'_>,
    place: &Place,
    function: &str,
    arguments: &Arguments<'_>,
) -> Result<Option<Found>, CaptureError> {
    call(context, place, Instant::now() + context.limits.settle_budget, function, arguments).await
}

/// How frames are called. A page that does not answer fails the capture, and a frame of another site the step: the answer to a
/// call never comes if its process ends.
fn calls<'a>(context: &'a CaptureContext<'_>, session: Option<&'a str>, until: Instant) -> FrameCalls<'a> {
    let latest = context.deadline + SCRIPT_GRACE;
    FrameCalls {
        tab: context.tab,
        session: session.unwrap_or(&context.tab.session),
        world_name: WORLD,
        until: if session.is_some() { latest.min(until + FRAME_GRACE) } else { latest },
        on_timeout: if session.is_some() { OnTimeout::Skip } else { OnTimeout::Fail },
    }
}

/// The id of the frame whose element was found last. `None` if it is gone.
async fn frame_id(context: &CaptureContext<'_>, place: &Place, until: Instant) -> Result<Option<String>, CaptureError> {
    let calls = calls(context, place.session.as_deref(), until);
    let element = calls.object(place.world, format!("{}.element()", *LIBRARY)).await?;
    let Some(element) = element else { return Ok(None) };
    Ok(calls.describe(element).await?.and_then(|node| node.frame_id))
}

/// The result of a function. `None` if it throws, or if the world is gone.
async fn call<T: DeserializeOwned>(
    context: &CaptureContext<'_>,
    place: &Place,
    until: Instant,
    function: &str,
    arguments: &impl Serialize,
) -> Result<Option<T>, CaptureError> {
    let arguments = serde_json::to_string(arguments).unwrap_or_else(|_| "{}".into());
    let params = EvaluateParams {
        context_id: Some(place.world),
        await_promise: Some(true),
        return_by_value: Some(true),
        silent: Some(true),
        ..EvaluateParams::new(format!("{}.{function}({arguments})", *LIBRARY))
    };
    let calls = calls(context, place.session.as_deref(), until);
    let evaluated: Option<Evaluated<T>> = calls.call(params).await?;
    Ok(evaluated.and_then(Evaluated::into_value))
}
