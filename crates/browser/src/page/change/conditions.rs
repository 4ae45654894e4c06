//! What the caller waits for besides elements, and the pages that the caller does not accept.

use grabd_domain::capture::{Conditions, Secrets, Selector};
use serde::{Deserialize, Serialize};

use crate::page::context::CaptureContext;
use crate::page::error::CaptureError;
use crate::page::findings::secret_filter::SecretFilter;
use crate::page::load::watch::FailedRequest;
use crate::page::script::millis_until;
use crate::page::selectors;

/// The most characters of a URL in a message.
const MAX_URL_CHARS: usize = 200;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WaitArguments<'a> {
    text: &'a str,
    budget_ms: u64,
}

#[derive(Deserialize)]
struct WaitResult {
    found: bool,
}

#[derive(Serialize)]
struct UnwantedArguments<'a> {
    selector: Option<&'a str>,
    text: Option<&'a str>,
}

#[derive(Deserialize)]
struct UnwantedResult {
    unwanted: Option<Unwanted>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Unwanted {
    Selector,
    Text,
    Invalid,
}

/// Waits until the page shows the text that the caller names. Returns whether there is any.
///
/// # Errors
/// If the text does not appear in time.
pub(in crate::page) async fn wait_for_text(context: &CaptureContext<'_>) -> Result<bool, CaptureError> {
    let Some(text) = &context.spec.conditions.wait_for_text else { return Ok(false) };
    // A click has led to another page: the text was waited for on the former one.
    if context.interactions.have_begun() {
        return Ok(false);
    }
    let _fast = context.clock.draw_fast();
    let budget_ms = millis_until(context.capture_by);
    match context.call_script::<WaitResult>("waitForText", &WaitArguments { text, budget_ms }).await? {
        Some(WaitResult { found: false }) => {
            Err(CaptureError::failed(format!("`wait_for_text` \"{text}\" did not appear in time.")))
        }
        // Without an answer, the document was replaced, which the caller notices by itself.
        Some(WaitResult { found: true }) | None => Ok(true),
    }
}

/// Checks that the page shows nothing with which the capture fails, and that its requests have not failed. Returns false if the
/// page does not answer, so that it must not be captured.
///
/// # Errors
/// If it shows that, if a request has failed, or if the selector is invalid.
pub(in crate::page) async fn check(context: &CaptureContext<'_>) -> Result<bool, CaptureError> {
    check_requests(context)?;
    let Conditions { fail_if_selector, fail_if_text, .. } = &context.spec.conditions;
    let (selector, text) = (fail_if_selector.as_ref().map(Selector::as_str), fail_if_text.as_deref());
    if selector.is_none() && text.is_none() {
        return Ok(true);
    }
    selectors::prepare(context, selector.unwrap_or_default()).await?;
    let answer = context.call_script::<UnwantedResult>("findUnwanted", &UnwantedArguments { selector, text }).await?;
    let selector = selector.unwrap_or_default();
    Err(CaptureError::failed(match answer {
        None => return Ok(false),
        Some(UnwantedResult { unwanted: None }) => return Ok(true),
        Some(UnwantedResult { unwanted: Some(Unwanted::Selector) }) => {
            format!("The page shows an element that matches `fail_if_selector` \"{selector}\".")
        }
        Some(UnwantedResult { unwanted: Some(Unwanted::Text) }) => {
            format!("The page shows the text of `fail_if_text`, \"{}\".", text.unwrap_or_default())
        }
        Some(UnwantedResult { unwanted: Some(Unwanted::Invalid) }) => {
            format!("`fail_if_selector` \"{selector}\" is not a valid CSS selector.")
        }
    }))
}

/// Checks that no request of the page has failed in a way that the caller does not accept.
///
/// # Errors
/// If one has.
pub(in crate::page) fn check_requests(context: &CaptureContext<'_>) -> Result<(), CaptureError> {
    // What is on a list of the caller, or of the service, was refused by the proxy. It has not failed.
    let failed: Option<FailedRequest> = context.tab.watch.read(|seen| {
        let failed = seen.failing.as_ref()?.failed();
        failed.iter().find(|failed| failed.status.is_some() || !context.is_listed(&failed.url)).cloned()
    });
    match failed {
        None => Ok(()),
        Some(FailedRequest { url, status, .. }) => {
            let url = shown_url(&context.spec.secrets, &url);
            Err(CaptureError::failed(request_failure(&url, status)))
        }
    }
}

/// A URL as it is shown: without values of the caller, its query and its fragment.
fn shown_url(secrets: &Secrets, url: &str) -> String {
    // The values first: they may have characters that end a path.
    without_query(&SecretFilter::of(secrets).url(url)).to_owned()
}

/// A URL without its query and its fragment, which may have secrets of the page.
fn without_query(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or_default()
}

/// The message about a request that failed. `status` is that of its answer, if it has one.
fn request_failure(url: &str, status: Option<u16>) -> String {
    let url: String = url.chars().filter(|char| !char.is_control()).take(MAX_URL_CHARS).collect();
    let end = status.map_or_else(|| "failed".to_owned(), |status| format!("was answered with status {status}"));
    format!("The request of the page to \"{url}\" {end}, with which `fail_on_request` fails.")
}

/// The failure of an image of one colour.
pub(in crate::page) fn blank_failure() -> CaptureError {
    CaptureError::failed("All of the image has one colour, with which `fail_if_blank` fails.")
}

#[cfg(test)]
mod tests {
    use grabd_domain::capture::{CaptureRequest, CaptureSpec};

    use super::*;

    #[test]
    fn values_of_the_caller_are_removed_from_urls_before_their_queries() {
        let mut request = CaptureRequest { url: Some("https://example.com/".into()), ..CaptureRequest::default() };
        let steps = r##"[{"type": {"into": "#a", "text": "pass?word", "secret": true}}]"##;
        assert!(request.set("steps", serde_json::from_str(steps).unwrap()));
        let secrets = CaptureSpec::parse(&request).unwrap().secrets;
        assert_eq!(shown_url(&secrets, "https://a.example/pass?word/b?c=d"), "https://a.example/removed/b");
    }

    #[test]
    fn message_about_a_request_has_no_query_and_is_short() {
        assert_eq!(without_query("https://a.example/b?token=c#d"), "https://a.example/b");
        assert_eq!(without_query("https://a.example/b#d?e"), "https://a.example/b");
        let message = request_failure("https://a.example/b", Some(503));
        let expected = "The request of the page to \"https://a.example/b\" was answered with status 503, with which `fail_on_request` fails.";
        assert_eq!(message, expected);
        assert!(request_failure("https://a.example/b", None).contains("b\" failed, with which"));
        let long = request_failure(&format!("https://a.example/\n{}", "é".repeat(1000)), None);
        assert!(long.chars().count() < 300 && !long.contains('\n'), "{long}");
    }
}
