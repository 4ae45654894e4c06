//! Clicks elements, runs the caller's script in the page, and waits for the caller's expression and the page's signal.

use std::sync::atomic::Ordering;
use std::time::Duration;

use chromiumoxide::cdp::browser_protocol::input::{DispatchMouseEventParams, DispatchMouseEventType, MouseButton};
use chromiumoxide::cdp::browser_protocol::page::{AddScriptToEvaluateOnNewDocumentParams, NavigateParams};
use chromiumoxide::cdp::js_protocol::runtime::{EvaluateParams, TimeDelta};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::cdp::CallError;
use crate::page::context::CaptureContext;
use crate::page::error::CaptureError;
use crate::page::load::settle;
use crate::page::script::{millis, millis_until};
use crate::page::selectors;

/// How long a script may run.
const SCRIPT_LIMIT: Duration = Duration::from_secs(5);

/// The time in which the browser ends a script that does not end by itself.
const SCRIPT_GRACE: Duration = Duration::from_millis(500);

/// Milliseconds between two evaluations of an expression that is waited for.
const POLL_MS: u64 = 50;

/// Notes the event with which a page says that it is ready.
const SIGNAL_LISTENER: &str = include_str!("../scripts/signal.js");

/// Whether the page has said so. An element with this id would also be a property of the window.
const SIGNAL: &str = "globalThis.grabReady === true || globalThis[Symbol.for('grabReady')] === true";

/// The most characters of a script's error that are reported.
const MAX_ERROR_CHARS: usize = 200;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TargetArguments<'a> {
    selector: &'a str,
    budget_ms: u64,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ClickTarget {
    Problem { problem: Problem },
    Point { x: f64, y: f64 },
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Problem {
    Invalid,
    Missing,
    Covered,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ScriptResult {
    exception_details: Option<ExceptionDetails>,
}

#[derive(Deserialize)]
struct ExceptionDetails {
    text: String,
    exception: Option<Exception>,
}

#[derive(Deserialize)]
struct Exception {
    description: Option<String>,
    value: Option<serde_json::Value>,
}

/// The value of an evaluation, and what it threw.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WaitResult {
    result: WaitValue,
    exception_details: Option<ExceptionDetails>,
}

#[derive(Deserialize)]
struct WaitValue {
    /// Made in the page's own world, which may have replaced what it is made with.
    value: Option<serde_json::Value>,
}

/// Makes the clicks that have not been made yet. After each, waits until the page has settled. Returns whether there
/// were any.
///
/// # Errors
/// If there is nothing to click.
pub(in crate::page) async fn click_all(context: &CaptureContext<'_>) -> Result<bool, CaptureError> {
    let done = &context.interactions.clicks;
    let clicks = context.spec.changes.click.iter().skip(done.load(Ordering::Relaxed));
    let mut has_clicked = false;
    for selector in clicks {
        let Some((x, y)) = find_target(context, selector).await? else { break };
        // A click that leads to another document must not be repeated there.
        done.fetch_add(1, Ordering::Relaxed);
        drop(context.tab.watch.take_prevented_window());
        move_mouse(context, (x, y), true).await?;
        settle::settle_again(context).await?;
        has_clicked = true;
        if let Some(url) = context.tab.watch.take_prevented_window() {
            follow(context, &format!("`click` \"{selector}\""), &url).await?;
        }
    }
    Ok(has_clicked)
}

/// Moves the mouse to a point of the window, and clicks there if `is_click`.
///
/// # Errors
/// If the browser does not answer.
pub(in crate::page) async fn move_mouse(
    context: &CaptureContext<'_>,
    (x, y): (f64, f64),
    is_click: bool,
) -> Result<(), CaptureError> {
    for kind in [
        DispatchMouseEventType::MouseMoved,
        DispatchMouseEventType::MousePressed,
        DispatchMouseEventType::MouseReleased,
    ] {
        let is_press = kind != DispatchMouseEventType::MouseMoved;
        if is_press && !is_click {
            break;
        }
        let event = DispatchMouseEventParams {
            button: is_press.then_some(MouseButton::Left),
            click_count: is_press.then_some(1),
            ..DispatchMouseEventParams::new(kind, x, y)
        };
        match context.tab.client.call(Some(&context.tab.session), event).await {
            // The document was replaced, which the caller notices by itself.
            Err(CallError::Refused { .. }) => break,
            sent => _ = sent?,
        }
    }
    Ok(())
}

/// Shows in this tab what a click opens in a new window. `clicked` says what opened it.
///
/// # Errors
/// If it is no page that has an address.
pub(in crate::page) async fn follow(
    context: &CaptureContext<'_>,
    clicked: &str,
    url: &str,
) -> Result<(), CaptureError> {
    if !["http:", "https:"].iter().any(|scheme| url.starts_with(scheme)) {
        return Err(CaptureError::failed(format!(
            "{clicked} opens a window that has no address, which cannot be captured."
        )));
    }
    let opener = context.tab.watch.read(|seen| seen.document.as_ref().map(|document| document.url.clone()));
    let navigate = NavigateParams { referrer: opener, ..NavigateParams::new(url) };
    match context.tab.client.call_within(context.remaining(), Some(&context.tab.session), navigate).await {
        // The document that replaces this one is checked like every other.
        Ok(_) | Err(CallError::Refused { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The centre of the element, or `None` if the document was replaced.
async fn find_target(context: &CaptureContext<'_>, selector: &str) -> Result<Option<(f64, f64)>, CaptureError> {
    let _fast = context.clock.draw_fast();
    selectors::prepare(context, selector).await?;
    let until = (Instant::now() + context.limits.settle_budget).min(context.capture_by);
    let arguments = TargetArguments { selector, budget_ms: millis_until(until) };
    let why = match context.call_script::<ClickTarget>("clickTarget", &arguments).await? {
        None => return Ok(None),
        Some(ClickTarget::Point { x, y }) => return Ok(Some((x, y))),
        Some(ClickTarget::Problem { problem }) => match problem {
            Problem::Invalid => "is not a valid CSS selector",
            Problem::Missing => "matches nothing visible on the page",
            Problem::Covered => "matches an element that another one covers",
        },
    };
    Err(CaptureError::failed(format!("`click` \"{selector}\" {why}.")))
}

/// Runs the caller's script in the page's own world, once for the grab. What it waits for is waited for, up to a limit.
/// Returns whether it ran.
///
/// # Errors
/// If the script throws, or does not let the page continue.
pub(in crate::page) async fn run_script(context: &CaptureContext<'_>) -> Result<bool, CaptureError> {
    let Some(script) = &context.spec.changes.script else { return Ok(false) };
    if context.interactions.has_run_script.swap(true, Ordering::Relaxed) {
        return Ok(false);
    }
    run_in_page(context, script, "`script`").await?;
    Ok(true)
}

/// Runs a script of the caller in the page's own world. What it waits for is waited for, up to a limit. Errors begin with
/// `name`.
///
/// # Errors
/// If the script throws, or does not let the page continue.
pub(in crate::page) async fn run_in_page(
    context: &CaptureContext<'_>,
    script: &str,
    name: &str,
) -> Result<(), CaptureError> {
    let params = EvaluateParams {
        await_promise: Some(true),
        timeout: Some(TimeDelta::new(SCRIPT_LIMIT.as_secs_f64() * 1000.0)),
        // The outer function has no result, which would have to be transferred.
        ..EvaluateParams::new(format!("(async () => {{ await (async () => {{\n{script}\n}})(); }})()"))
    };
    let began = Instant::now();
    let limit = (SCRIPT_LIMIT + SCRIPT_GRACE).min(context.remaining());
    match context.tab.client.call_as::<_, ScriptResult>(limit, Some(&context.tab.session), params).await {
        Ok(ScriptResult { exception_details: None }) => Ok(()),
        Ok(ScriptResult { exception_details: Some(thrown) }) => {
            let line = first_line(thrown, &context.spec.secrets.hidden_texts());
            Err(CaptureError::failed(format!("{name} failed: {line}")))
        }
        // The browser ended it, and reports an internal error then (Chromium 156), or what it waits for takes longer.
        Err(CallError::Timeout(_)) => Err(still_running(name)),
        Err(CallError::Refused { .. }) if began.elapsed() >= SCRIPT_LIMIT => Err(still_running(name)),
        // The document was replaced, which the caller notices by itself.
        Err(CallError::Refused { message, .. }) => {
            tracing::debug!(message, "the caller's script ended early");
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

/// The program that evaluates an expression until it is true. An exception is not an error: what the expression uses may not
/// exist yet. The arrow function is parsed before anything runs, so that a syntax error is reported at once. The timers of a page
/// with a fixed clock do not run in real time, so such a page has another way to wait.
fn waiting_program(expression: &str, budget_ms: u64) -> String {
    format!(
        "(async () => {{
const read = async () => (
{expression}
);
const until = performance.now() + {budget_ms};
for (;;) {{
  let thrown = null;
  try {{
    if (await read()) return {{ found: true, thrown }};
  }} catch (error) {{
    thrown = String(error);
  }}
  if (performance.now() >= until) return {{ found: false, thrown }};
  await (globalThis[Symbol.for('grabd-wait')]?.({POLL_MS}) ?? new Promise((done) => setTimeout(done, {POLL_MS})));
}}
}})()"
    )
}

/// Why an expression that was waited for is not true.
enum Unmet {
    /// It cannot be evaluated.
    Invalid(ExceptionDetails),
    /// It did not become true in time. The last time, it threw this.
    Late(Option<String>),
}

/// Waits until the caller's expression is true, in the page's own world. Returns whether there is any.
///
/// # Errors
/// If it does not become true in time, or cannot be evaluated.
pub(in crate::page) async fn wait_for_expression(context: &CaptureContext<'_>) -> Result<bool, CaptureError> {
    let Some(expression) = &context.spec.conditions.wait_for_expression else { return Ok(false) };
    // A click has led to another page: the expression was waited for on the former one.
    if context.interactions.have_begun() {
        return Ok(false);
    }
    match wait_until_true(context, expression).await? {
        None => Ok(true),
        Some(Unmet::Invalid(thrown)) => {
            let line = first_line(thrown, &context.spec.secrets.hidden_texts());
            Err(CaptureError::failed(format!("`wait_for_expression` failed: {line}")))
        }
        Some(Unmet::Late(thrown)) => Err(not_true(context, thrown)),
    }
}

/// Notes the page's event `grabReady` in every document from now on, if it is waited for. It may come before the wait.
///
/// # Errors
/// If the browser does not answer.
pub(in crate::page) async fn listen_for_signal(context: &CaptureContext<'_>) -> Result<(), CaptureError> {
    if context.spec.conditions.wait_for_signal {
        let listen = AddScriptToEvaluateOnNewDocumentParams::new(SIGNAL_LISTENER);
        context.tab.client.call(Some(&context.tab.session), listen).await?;
    }
    Ok(())
}

/// Waits until the page says that it is ready, if the caller asks for that. Returns whether the caller does.
///
/// # Errors
/// If the page does not say so in time.
pub(in crate::page) async fn wait_for_signal(context: &CaptureContext<'_>) -> Result<bool, CaptureError> {
    // A click has led to another page: the signal was waited for on the former one.
    if !context.spec.conditions.wait_for_signal || context.interactions.have_begun() {
        return Ok(false);
    }
    match wait_until_true(context, SIGNAL).await? {
        None => Ok(true),
        Some(Unmet::Invalid(_) | Unmet::Late(_)) => Err(CaptureError::failed(
            "`wait_for_signal`: the page neither set `window.grabReady = true` nor dispatched the event `grabReady` in time.",
        )),
    }
}

/// Waits until an expression is true in the page's own world. Returns why it is not. `None` also if the document was replaced,
/// which the caller notices by itself.
async fn wait_until_true(context: &CaptureContext<'_>, expression: &str) -> Result<Option<Unmet>, CaptureError> {
    let _fast = context.clock.draw_fast();
    let left = context.capture_by.saturating_duration_since(Instant::now());
    let params = EvaluateParams {
        await_promise: Some(true),
        return_by_value: Some(true),
        // Of a part of it that does not end by itself.
        timeout: Some(TimeDelta::new(SCRIPT_LIMIT.as_secs_f64() * 1000.0)),
        ..EvaluateParams::new(waiting_program(expression, millis(left)))
    };
    let began = Instant::now();
    let limit = (left + SCRIPT_GRACE).min(context.remaining());
    match context.tab.client.call_as::<_, WaitResult>(limit, Some(&context.tab.session), params).await {
        Ok(WaitResult { exception_details: Some(thrown), .. }) => Ok(Some(Unmet::Invalid(thrown))),
        Ok(WaitResult { result: WaitValue { value }, exception_details: None }) => {
            let end = value.unwrap_or_default();
            Ok(match end["found"].as_bool() {
                Some(true) => None,
                Some(false) | None => Some(Unmet::Late(end["thrown"].as_str().map(str::to_owned))),
            })
        }
        // The page is kept busy, or its timers do not run.
        Err(CallError::Timeout(_)) => Ok(Some(Unmet::Late(None))),
        Err(CallError::Refused { .. }) if began.elapsed() >= SCRIPT_LIMIT.min(left) => Ok(Some(Unmet::Late(None))),
        Err(CallError::Refused { message, .. }) => {
            tracing::debug!(message, "a wait for an expression ended early");
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// The failure of an expression that is not true in time, and that threw this the last time.
fn not_true(context: &CaptureContext<'_>, thrown: Option<String>) -> CaptureError {
    let reason = thrown.map_or(String::new(), |text| {
        let details = ExceptionDetails { text, exception: None };
        let line = first_line(details, &context.spec.secrets.hidden_texts());
        format!(" The last time, it threw {}.", line.trim_end_matches('.'))
    });
    CaptureError::failed(format!("`wait_for_expression` did not become true in time.{reason}"))
}

fn still_running(name: &str) -> CaptureError {
    CaptureError::failed(format!("{name} was still running after {} seconds.", SCRIPT_LIMIT.as_secs()))
}

/// The first line of what a script threw, without the texts of the caller that are secret.
fn first_line(thrown: ExceptionDetails, secrets: &[&str]) -> String {
    let ExceptionDetails { text, exception } = thrown;
    let value = |value: serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let described = exception.and_then(|exception| exception.description.or_else(|| exception.value.map(value)));
    let described = described.unwrap_or(text);
    let description = secrets.iter().fold(described, |description, secret| description.replace(secret, "…"));
    let line = description.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("an exception");
    line.chars().filter(|c| !c.is_control()).take(MAX_ERROR_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expression_is_a_line_of_its_own_in_the_program() {
        let program = waiting_program("a // comment", 1500);
        assert!(program.contains("(\na // comment\n);"), "{program}");
        assert!(program.contains("performance.now() + 1500;") && program.contains("setTimeout(done, 50)"), "{program}");
    }

    #[test]
    fn first_line_of_an_exception_is_reported() {
        let thrown = |json: &str| first_line(serde_json::from_str(json).unwrap(), &["pass\nword"]);
        assert_eq!(thrown(r#"{"text":"Uncaught","exception":{"description":"Error: no\n    at x"}}"#), "Error: no");
        assert_eq!(thrown(r#"{"text":"Uncaught","exception":{"value":"late"}}"#), "late");
        assert_eq!(thrown(r#"{"text":"Uncaught","exception":{"value":7}}"#), "7");
        assert_eq!(thrown(r#"{"text":"Uncaught"}"#), "Uncaught");
        assert_eq!(thrown(r#"{"text":"\n"}"#), "an exception");
        assert_eq!(thrown(r#"{"text":"no pass\nword here"}"#), "no … here");
        let long = format!(r#"{{"text":"{}"}}"#, "é".repeat(1000));
        assert_eq!(thrown(&long).chars().count(), MAX_ERROR_CHARS);
    }
}
