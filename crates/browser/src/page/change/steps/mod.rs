//! Does the caller's steps on the loaded page, one after the other.

mod attach;
mod drag;
mod input;
mod locate;

use std::sync::atomic::Ordering;
use std::time::Duration;

use chromiumoxide::cdp::browser_protocol::emulation::SetFocusEmulationEnabledParams;
use grabd_domain::capture::{ScrollTarget, Step};
use tokio::time::Instant;

pub(in crate::page) use self::locate::FRAME_SEPARATOR;
use self::locate::{Arguments, Found, Problem};
use crate::cdp::CallError;
use crate::page::change::interact;
use crate::page::context::CaptureContext;
use crate::page::error::CaptureError;
use crate::page::load::settle;
use crate::page::picture::step_image;

/// How much longer steps wait that do nothing else. An element to act on is waited for as long as a page may take to settle.
const WAIT_FACTOR: u32 = 2;

/// How long the page is given to settle between two steps.
const SETTLE_LIMIT: Duration = Duration::from_secs(2);

/// The most characters of a selector in an error.
const MAX_SELECTOR_CHARS: usize = 100;

/// Does the steps that have not been done yet. After each, waits until the page has settled. Returns whether there were any.
///
/// # Errors
/// If one of them cannot be done.
pub(in crate::page) async fn take_all(context: &CaptureContext<'_>) -> Result<bool, CaptureError> {
    let steps = &context.spec.secrets.steps;
    let first = context.interactions.steps.load(Ordering::Relaxed);
    if first >= steps.len() {
        return Ok(false);
    }
    // The page has the focus, as a page that somebody uses.
    let focus = SetFocusEmulationEnabledParams::new(true);
    match context.tab.client.call(Some(&context.tab.session), focus).await {
        Ok(_) | Err(CallError::Refused { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    for (at, step) in steps.iter().enumerate().skip(first) {
        let name = format!("Step {} ({})", at + 1, step.name());
        if context.is_late() {
            return Err(CaptureError::failed(format!("{name}: the time of the capture was over before.")));
        }
        drop(context.tab.watch.take_prevented_window());
        take(context, step, &name, at + 1).await?;
        let limit = if at + 1 < steps.len() { SETTLE_LIMIT } else { context.limits.settle_budget };
        settle::settle_within(context, limit).await?;
        if let Some(url) = context.tab.watch.take_prevented_window() {
            interact::follow(context, &name, &url).await?;
        }
    }
    Ok(true)
}

/// Does a step. `number` is the number of steps that are done with it.
async fn take(context: &CaptureContext<'_>, step: &Step, name: &str, number: usize) -> Result<(), CaptureError> {
    // What leads to another document must not be repeated there, but what was waited for until then is waited for there.
    let set_done = || context.interactions.steps.store(number, Ordering::Relaxed);
    let left = context.capture_by.saturating_duration_since(Instant::now());
    let step_limit = context.limits.settle_budget.min(left);
    let wait_limit = (context.limits.settle_budget * WAIT_FACTOR).min(left);
    let secrets = context.spec.secrets.hidden_texts();
    let arguments = |selector, text, kind| Arguments {
        selector,
        text,
        kind,
        secrets: &secrets,
        // The budget is set by the wait.
        ..Arguments::default()
    };
    let failed = |found: &Found, selector: &str, limit: Duration| {
        let why = found.problem.map(|problem| explain(problem, found, selector, limit, &secrets));
        why.map_or(Ok(()), |why| Err(CaptureError::failed(format!("{name}: {why}"))))
    };
    match step {
        Step::Click(selector) | Step::Hover(selector) => {
            let is_click = matches!(step, Step::Click(_));
            let target = Arguments { enabled: is_click, ..arguments(selector.as_str(), "", "buttons") };
            let (found, _) = locate::find(context, "target", target, step_limit).await?;
            failed(&found, selector, step_limit)?;
            set_done();
            if let Some(point) = found.point() {
                interact::move_mouse(context, point, is_click).await?;
            }
        }
        Step::Type { into, text, is_secret: _ } => {
            let field = arguments(into.as_str(), "", "fields");
            let (found, place) = locate::find(context, "field", field, step_limit).await?;
            failed(&found, into, step_limit)?;
            set_done();
            match place.filter(|_| found.is_value) {
                Some(place) => {
                    let value = arguments(into.as_str(), text.as_str(), "");
                    let set = locate::apply(context, &place, "setValue", &value).await?;
                    failed(&set.unwrap_or_default(), into, step_limit)?;
                }
                None => input::insert_text(context, text).await?,
            }
        }
        Step::Press(press) => {
            set_done();
            input::press(context, press).await?;
        }
        Step::Select { list, option } => {
            let wanted = arguments(list.as_str(), option.as_str(), "lists");
            let (found, place) = locate::find(context, "list", wanted, step_limit).await?;
            failed(&found, list, step_limit)?;
            set_done();
            if let Some(place) = place {
                locate::apply(context, &place, "choose", &wanted).await?;
            }
        }
        Step::ScrollTo(ScrollTarget::Element(selector)) => {
            let target = arguments(selector.as_str(), "", "");
            let (found, _) = locate::find(context, "scrollToElement", target, step_limit).await?;
            failed(&found, selector, step_limit)?;
            set_done();
        }
        Step::ScrollTo(ScrollTarget::Top | ScrollTarget::Bottom) => {
            let is_bottom = *step == Step::ScrollTo(ScrollTarget::Bottom);
            let end = arguments("", if is_bottom { "bottom" } else { "top" }, "");
            let found = locate::find_in_page(context, "scrollToEnd", end, step_limit).await?;
            failed(&found, "", step_limit)?;
            set_done();
        }
        Step::WaitFor(selector) => {
            let awaited = arguments(selector.as_str(), "", "");
            let (found, _) = locate::find(context, "wait", awaited, wait_limit).await?;
            failed(&found, selector, wait_limit)?;
            set_done();
        }
        Step::WaitForText(text) => {
            let awaited = arguments("", text.as_str(), "");
            let found = locate::find_in_page(context, "waitForText", awaited, wait_limit).await?;
            failed(&found, text, wait_limit)?;
            set_done();
        }
        Step::Script(script) => {
            set_done();
            interact::run_in_page(context, script, name).await?;
        }
        Step::Drag { from, to } => {
            let (found, _) = locate::find(context, "target", arguments(from.as_str(), "", ""), step_limit).await?;
            failed(&found, from, step_limit)?;
            set_done();
            let dropped = drag_to(context, &found, arguments(to.as_str(), "", ""), step_limit).await?;
            failed(&dropped, to, step_limit)?;
        }
        Step::Capture(image) => {
            step_image::take(context, image, name).await?;
            set_done();
        }
    }
    Ok(())
}

/// Waits until an element in a frame is visible, before there are steps. Errors begin with `name`, the name of the option.
///
/// # Errors
/// If none becomes visible in time.
pub(in crate::page) async fn wait_in_frame(
    context: &CaptureContext<'_>,
    name: &str,
    selector: &str,
) -> Result<(), CaptureError> {
    let limit = context.capture_by.saturating_duration_since(Instant::now());
    let secrets = context.spec.secrets.hidden_texts();
    let awaited = Arguments { selector, secrets: &secrets, ..Arguments::default() };
    let (found, _) = locate::find(context, "wait", awaited, limit).await?;
    match found.problem {
        None => Ok(()),
        Some(problem) => {
            let why = explain(problem, &found, selector, limit, &secrets);
            Err(CaptureError::failed(format!("`{name}`: {why}")))
        }
    }
}

/// Drags an element that was found to another one, which may appear only then. Without it, the button is released at once.
async fn drag_to(
    context: &CaptureContext<'_>,
    found: &Found,
    target: Arguments<'_>,
    limit: Duration,
) -> Result<Found, CaptureError> {
    let _fast = context.clock.draw_fast();
    let Some(start) = found.point() else { return Ok(Found::default()) };
    let at = drag::begin(context, start).await?;
    let (found, _) = locate::find(context, "target", Arguments { is_dragging: true, ..target }, limit).await?;
    match found.point() {
        Some(end) => drag::finish(context, at, end).await?,
        None => drag::release(context, at).await?,
    }
    Ok(found)
}

/// Why a step cannot be done, as a sentence without the secrets: a selector may name what another step types.
fn explain(problem: Problem, found: &Found, selector: &str, limit: Duration, secrets: &[&str]) -> String {
    let quoted = |text: &str| {
        let text = secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret, "…"));
        let chars = text.chars().filter(|c| !c.is_control());
        let mut short: String = chars.take(MAX_SELECTOR_CHARS).collect();
        if short.len() < text.len() {
            short.push('…');
        }
        format!("\"{short}\"")
    };
    let seconds = (limit.as_secs_f64() * 10.0).round() / 10.0;
    let named = quoted(found.frame.as_deref().unwrap_or(selector));
    let what = if found.frame.is_some() { format!("the frame {named}") } else { named.clone() };
    match problem {
        Problem::Invalid => format!("{what} is not a valid selector."),
        Problem::Missing => format!("nothing matches {named} within {seconds} s.{}", instead(found)),
        Problem::Hidden => format!("nothing that matches {named} is visible within {seconds} s."),
        Problem::Covered => {
            let by = found.by.as_deref().unwrap_or("another element");
            format!("{what} is covered by {by}.")
        }
        Problem::Disabled => format!("{what} is still disabled after {seconds} s."),
        Problem::ReadOnly => format!("{what} cannot be changed, because it is read-only."),
        Problem::NotField => format!("{what} is no field that takes text."),
        Problem::NotAccepted => format!("{what} does not accept the text. Dates are written as 2026-12-31."),
        Problem::NotList => format!("{what} is no `<select>`. Use `click` for lists of another kind."),
        Problem::NoOption => {
            let count = found.count;
            let options = found.names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
            format!("{what} has none of its {count} options with that value or label: {options}.")
        }
        Problem::NotFrame => format!("{what} is no frame."),
        Problem::OtherSite => format!("{what} shows a page of another site, which steps cannot reach."),
        Problem::Replaced => format!("the page did not stay as it was for long enough within {seconds} s."),
    }
}

/// What the page has instead of the element, as a sentence after a space. Empty if that is not known.
fn instead(found: &Found) -> String {
    let Some(noun) = &found.noun else { return String::new() };
    let names = found.names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
    let has_more = usize::try_from(found.count).is_ok_and(|count| count > found.names.len());
    let more = if has_more { " and others" } else { "" };
    match (found.count, names.as_str()) {
        (0, _) => format!(" The page has no {noun}."),
        (count, "") => format!(" The page has {count} {noun}."),
        (count, names) => format!(" The page has {count} {noun}: {names}{more}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(json: &str) -> Found {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn failures_say_what_was_looked_for_and_what_the_page_has() {
        let explained = |json: &str, selector: &str| {
            let found = found(json);
            explain(found.problem.unwrap(), &found, selector, Duration::from_secs(5), &[])
        };
        for (json, expected) in [
            (
                r#"{"problem": "missing", "noun": "buttons and links", "count": 12, "names": ["Add", "Log in"]}"#,
                "nothing matches \"#buy\" within 5 s. The page has 12 buttons and links: \"Add\", \"Log in\" and others.",
            ),
            (
                r#"{"problem": "missing", "noun": "fields", "count": 0, "names": []}"#,
                "nothing matches \"#buy\" within 5 s. The page has no fields.",
            ),
            (r#"{"problem": "missing"}"#, "nothing matches \"#buy\" within 5 s."),
            (r#"{"problem": "covered", "by": "<div.overlay>"}"#, "\"#buy\" is covered by <div.overlay>."),
            (
                r#"{"problem": "noOption", "count": 2, "names": ["A", "B"]}"#,
                "\"#buy\" has none of its 2 options with that value or label: \"A\", \"B\".",
            ),
        ] {
            assert_eq!(explained(json, "#buy"), expected);
        }
        let long = explained(r#"{"problem": "invalid"}"#, &"ä".repeat(1000));
        assert_eq!(long, format!("\"{}…\" is not a valid selector.", "ä".repeat(MAX_SELECTOR_CHARS)));
        let mut of_frame = found(r#"{"problem": "otherSite"}"#);
        of_frame.frame = Some("iframe".to_owned());
        let explained = explain(Problem::OtherSite, &of_frame, "button", Duration::from_secs(5), &[]);
        assert_eq!(explained, "the frame \"iframe\" shows a page of another site, which steps cannot reach.");
    }
}
