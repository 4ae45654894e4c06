//! The requests of a page with which its capture fails, if the caller has rules about them.

use std::collections::HashMap;

use grabd_domain::capture::RequestRule;

use crate::cdp::Event;

/// The number of open requests that are tracked: with the longest URLs, they take 1 MB.
const MAX_OPEN: usize = 512;

/// The number of failed requests that are kept.
const MAX_FAILED: usize = 256;

/// The most characters of a URL that are compared with rules. Longer ones are cut.
const MAX_URL_CHARS: usize = 2048;

/// How errors begin of requests that have not failed: the page, the caller or the service has stopped them.
const STOPPED: [&str; 2] = ["net::ERR_ABORTED", "net::ERR_BLOCKED_BY_CLIENT"];

/// A request that failed as a rule says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FailedRequest {
    request: String,
    pub(crate) url: String,
    /// The status of its answer, if it has one.
    pub(crate) status: Option<u16>,
}

/// Finds the requests of the current document that fail as one of the rules says.
#[derive(Clone, Debug)]
pub(crate) struct FailingRequests {
    rules: Vec<RequestRule>,
    /// The URLs of the open requests that a rule is about.
    open: HashMap<String, String>,
    /// In the order of their failures.
    failed: Vec<FailedRequest>,
}

impl FailingRequests {
    pub(super) fn new(rules: &[RequestRule]) -> Self {
        Self { rules: rules.to_vec(), open: HashMap::new(), failed: Vec::new() }
    }

    /// The requests that failed, first ones first. Those that the proxy has refused are among them.
    pub(crate) fn failed(&self) -> &[FailedRequest] {
        &self.failed
    }

    pub(super) fn note(&mut self, event: &Event) {
        match event {
            // What a redirect leads to has the same id.
            Event::RequestStarted { request, url, .. } => {
                self.open.remove(request);
                let url: String = url.chars().take(MAX_URL_CHARS).collect();
                // The content of these is in the URL.
                let is_sent = !url.starts_with("data:") && !url.starts_with("blob:");
                if is_sent && self.open.len() < MAX_OPEN && self.rules.iter().any(|rule| rule.has_url(&url)) {
                    self.open.insert(request.clone(), url);
                }
            }
            // The body may still break off.
            Event::ResponseReceived { request, head, .. } => self.check(request, Some(head.status)),
            Event::RequestFailed { request, error } => {
                if !STOPPED.iter().any(|stopped| error.starts_with(stopped)) {
                    self.check(request, None);
                }
                self.open.remove(request);
            }
            Event::RequestFinished { request } => _ = self.open.remove(request),
            // The requests of the document before are not those of the captured one.
            Event::FrameNavigated { is_main: true, loader, .. } => {
                self.failed.retain(|failed| failed.request == *loader);
                self.open.retain(|request, _| request == loader);
            }
            Event::FrameNavigated { is_main: false, .. }
            | Event::NavigatedWithinDocument { .. }
            | Event::DomContentLoaded
            | Event::Loaded
            | Event::Logged { .. }
            | Event::DataReceived { .. }
            | Event::SocketOpened { .. }
            | Event::SocketSent { .. }
            | Event::MessageReceived { .. }
            | Event::SocketClosed { .. }
            | Event::DialogOpened { .. }
            | Event::DownloadBegan
            | Event::RequestPaused(_)
            | Event::WorkerStarted { .. }
            | Event::HeadersReceived { .. }
            | Event::WindowPrevented { .. }
            | Event::DatabaseChanged
            | Event::TimeBudgetExpired
            | Event::Crashed
            | Event::Detached => {}
        }
    }

    fn check(&mut self, request: &str, status: Option<u16>) {
        let Some(url) = self.open.get(request).filter(|_| self.failed.len() < MAX_FAILED) else { return };
        if self.rules.iter().any(|rule| rule.fails_with(url, status)) {
            self.failed.push(FailedRequest { request: request.to_owned(), url: url.clone(), status });
        }
    }
}

#[cfg(test)]
mod tests {
    use grabd_domain::capture::{CaptureRequest, CaptureSpec};

    use super::*;
    use crate::cdp::{Head, Kind};

    fn started(request: &str, url: &str) -> Event {
        Event::RequestStarted {
            request: request.into(),
            loader: "1".into(),
            frame: Some("main".into()),
            kind: Kind::Data,
            url: url.into(),
            redirected: None,
            details: Box::default(),
        }
    }

    fn answered(request: &str, status: u16) -> Event {
        Event::ResponseReceived {
            request: request.into(),
            loader: "1".into(),
            kind: Kind::Data,
            head: Head { status, ..Head::default() },
            length: None,
            details: Box::default(),
        }
    }

    fn failed(request: &str, error: &str) -> Event {
        Event::RequestFailed { request: request.into(), error: error.into() }
    }

    fn navigated(loader: &str) -> Event {
        Event::FrameNavigated {
            frame: "main".into(),
            is_main: true,
            loader: loader.into(),
            url: "https://a/".into(),
            unreachable_url: None,
        }
    }

    /// The URL and the status of the first request that fails by this rule.
    fn first(rule: &str, events: impl IntoIterator<Item = Event>) -> Option<(String, Option<u16>)> {
        let mut request = CaptureRequest { url: Some("https://example.com/".into()), ..CaptureRequest::default() };
        assert!(request.set("fail_on_request", serde_json::from_str(&format!("[{rule}]")).unwrap()));
        let mut failing = FailingRequests::new(&CaptureSpec::parse(&request).unwrap().conditions.fail_on_request);
        events.into_iter().for_each(|event| failing.note(&event));
        failing.failed().first().map(|failed| (failed.url.clone(), failed.status))
    }

    const ANY: &str = r#"{"url": "https://a/*"}"#;

    #[test]
    fn first_request_that_fails_is_found() {
        let api = || started("2", "https://a/api?b");
        let found = |status| Some(("https://a/api?b".to_owned(), status));
        assert_eq!(first(ANY, [api(), answered("2", 200)]), None);
        assert_eq!(first(ANY, [api(), answered("2", 503), failed("2", "net::ERR_FAILED")]), found(Some(503)));
        assert_eq!(first(ANY, [api(), failed("2", "net::ERR_CONNECTION_REFUSED")]), found(None));
        assert_eq!(first(ANY, [started("2", "https://b/"), answered("2", 503)]), None);
        assert_eq!(first(ANY, [answered("3", 503)]), None, "a request whose start was not seen");
        let events = [api(), answered("2", 404), started("3", "https://a/3"), answered("3", 500)];
        assert_eq!(first(r#"{"url": "*", "status": "5xx"}"#, events), Some(("https://a/3".to_owned(), Some(500))));
        let broken = [api(), answered("2", 200), failed("2", "net::ERR_CONTENT_LENGTH_MISMATCH")];
        assert_eq!(first(ANY, broken), found(None), "its body breaks off");
    }

    #[test]
    fn stopped_requests_do_not_fail_and_redirects_count_by_their_end() {
        for error in STOPPED {
            assert_eq!(first(ANY, [started("2", "https://a/2"), failed("2", error)]), None, "{error}");
        }
        let led = [started("2", "https://a/2"), started("2", "https://b/2"), answered("2", 500)];
        assert_eq!(first(ANY, led.clone()), None);
        let rule = r#"{"url": "https://b/*"}"#;
        assert_eq!(first(rule, led), Some(("https://b/2".to_owned(), Some(500))));
        assert_eq!(first(r#"{"url": "*"}"#, [started("2", "data:,x"), failed("2", "net::ERR_INVALID_URL")]), None);
    }

    #[test]
    fn only_requests_of_the_last_document_count() {
        let document = [started("1", "https://a/1"), answered("1", 500)];
        let found = Some(("https://a/1".to_owned(), Some(500)));
        assert_eq!(first(ANY, document.clone().into_iter().chain([navigated("1")])), found);
        assert_eq!(first(ANY, document.into_iter().chain([navigated("1"), navigated("2")])), None);
    }

    #[test]
    fn open_requests_are_bounded() {
        let mut request = CaptureRequest { url: Some("https://example.com/".into()), ..CaptureRequest::default() };
        assert!(request.set("fail_on_request", serde_json::from_str(r#"[{"url": "*"}]"#).unwrap()));
        let mut failing = FailingRequests::new(&CaptureSpec::parse(&request).unwrap().conditions.fail_on_request);
        let long = format!("https://a/{}", "é".repeat(5000));
        (0..2 * MAX_OPEN).for_each(|number| failing.note(&started(&number.to_string(), &long)));
        assert_eq!(failing.open.len(), MAX_OPEN);
        assert!(failing.open.values().all(|url| url.chars().count() == MAX_URL_CHARS));
    }
}
