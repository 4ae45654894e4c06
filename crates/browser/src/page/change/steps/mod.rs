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
use self::locate::{Arguments, Found, Place, Problem};
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
        StepRun::new(context, &name, at + 1).take(step).await?;
        let limit = if at + 1 < steps.len() { SETTLE_LIMIT } else { context.limits.settle_budget };
        settle::settle_within(context, limit).await?;
        if let Some(url) = context.tab.watch.take_prevented_window() {
            interact::follow(context, &name, &url).await?;
        }
    }
    Ok(true)
}

/// A step that is being done.
struct StepRun<'a> {
    context: &'a CaptureContext<'a>,
    /// The beginning of errors: its number and its kind.
    name: &'a str,
    /// The number of steps that are done with it.
    number: usize,
    /// What must not be in errors.
    secrets: Vec<&'a str>,
    /// How long an element to act on is waited for.
    step_limit: Duration,
    /// How long a step waits that does nothing else.
    wait_limit: Duration,
}

impl<'a> StepRun<'a> {
    fn new(context: &'a CaptureContext<'a>, name: &'a str, number: usize) -> Self {
        let left = context.capture_by.saturating_duration_since(Instant::now());
        let settle_budget = context.limits.settle_budget;
        Self {
            context,
            name,
            number,
            secrets: context.spec.secrets.hidden_texts(),
            step_limit: settle_budget.min(left),
            wait_limit: (settle_budget * WAIT_FACTOR).min(left),
        }
    }

    /// The arguments for a selector. The budget is set by the wait.
    fn arguments<'s>(&'s self, selector: &'s str, text: &'s str, kind: &'s str) -> Arguments<'s> {
        Arguments { selector, text, kind, secrets: &self.secrets, ..Arguments::default() }
    }

    /// What leads to another document must not be repeated there, but what was waited for until then is waited for there.
    fn set_done(&self) {
        self.context.interactions.steps.store(self.number, Ordering::Relaxed);
    }

    /// The error of a function that has a problem.
    fn check(&self, found: &Found, named: &str, limit: Duration) -> Result<(), CaptureError> {
        let Some(problem) = found.problem else { return Ok(()) };
        let why = explain(problem, found, named, limit, &self.secrets);
        Err(CaptureError::failed(format!("{}: {why}", self.name)))
    }

    /// Calls a function with an element, and checks that it has no problem.
    async fn find(
        &self,
        function: &str,
        arguments: Arguments<'_>,
        limit: Duration,
    ) -> Result<(Found, Option<Place>), CaptureError> {
        let (found, place) = locate::find(self.context, function, arguments, limit).await?;
        self.check(&found, arguments.selector, limit)?;
        Ok((found, place))
    }

    async fn take(&self, step: &Step) -> Result<(), CaptureError> {
        match step {
            Step::Click(selector) => self.point_at(selector, true).await,
            Step::Hover(selector) => self.point_at(selector, false).await,
            Step::Type { into, text, is_secret: _ } => self.type_text(into, text).await,
            Step::Press(press) => {
                self.set_done();
                input::press(self.context, press).await
            }
            Step::Select { list, option } => self.select(list, option).await,
            Step::ScrollTo(target) => self.scroll_to(target).await,
            Step::WaitFor(selector) => {
                self.find("wait", self.arguments(selector, "", ""), self.wait_limit).await?;
                self.set_done();
                Ok(())
            }
            Step::WaitForText(text) => {
                let awaited = self.arguments("", text, "");
                let found = locate::find_in_page(self.context, "waitForText", awaited, self.wait_limit).await?;
                self.check(&found, text, self.wait_limit)?;
                self.set_done();
                Ok(())
            }
            Step::Script(script) => {
                self.set_done();
                interact::run_in_page(self.context, script, self.name).await
            }
            Step::Drag { from, to } => self.drag(from, to).await,
            Step::Capture(image) => {
                step_image::take(self.context, image, self.name).await?;
                self.set_done();
                Ok(())
            }
        }
    }

    /// Moves the mouse over an element, and clicks it if `is_click`.
    async fn point_at(&self, selector: &str, is_click: bool) -> Result<(), CaptureError> {
        let target = Arguments { enabled: is_click, ..self.arguments(selector, "", "buttons") };
        let (found, _) = self.find("target", target, self.step_limit).await?;
        self.set_done();
        match found.point() {
            Some(point) => interact::move_mouse(self.context, point, is_click).await,
            None => Ok(()),
        }
    }

    async fn type_text(&self, into: &str, text: &str) -> Result<(), CaptureError> {
        let (found, place) = self.find("field", self.arguments(into, "", "fields"), self.step_limit).await?;
        self.set_done();
        match place.filter(|_| found.is_value) {
            Some(place) => {
                let value = self.arguments(into, text, "");
                let set = locate::apply(self.context, &place, "setValue", &value).await?;
                self.check(&set.unwrap_or_default(), into, self.step_limit)
            }
            None => input::insert_text(self.context, text).await,
        }
    }

    async fn select(&self, list: &str, option: &str) -> Result<(), CaptureError> {
        let wanted = self.arguments(list, option, "lists");
        let (_, place) = self.find("list", wanted, self.step_limit).await?;
        self.set_done();
        if let Some(place) = place {
            locate::apply(self.context, &place, "choose", &wanted).await?;
        }
        Ok(())
    }

    async fn scroll_to(&self, target: &ScrollTarget) -> Result<(), CaptureError> {
        let end = match target {
            ScrollTarget::Element(selector) => {
                self.find("scrollToElement", self.arguments(selector, "", ""), self.step_limit).await?;
                self.set_done();
                return Ok(());
            }
            ScrollTarget::Top => self.arguments("", "top", ""),
            ScrollTarget::Bottom => self.arguments("", "bottom", ""),
        };
        let found = locate::find_in_page(self.context, "scrollToEnd", end, self.step_limit).await?;
        self.check(&found, "", self.step_limit)?;
        self.set_done();
        Ok(())
    }

    /// Drags an element to another one, which may appear only then. Without it, the button is released at once.
    async fn drag(&self, from: &str, to: &str) -> Result<(), CaptureError> {
        let (found, _) = self.find("target", self.arguments(from, "", ""), self.step_limit).await?;
        self.set_done();
        let Some(start) = found.point() else { return Ok(()) };
        let _fast = self.context.clock.draw_fast();
        let at = drag::begin(self.context, start).await?;
        let target = Arguments { is_dragging: true, ..self.arguments(to, "", "") };
        let (found, _) = locate::find(self.context, "target", target, self.step_limit).await?;
        match found.point() {
            Some(end) => drag::finish(self.context, at, end).await?,
            None => drag::release(self.context, at).await?,
        }
        self.check(&found, to, self.step_limit)
    }
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
