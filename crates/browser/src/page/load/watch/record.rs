//! What a page requested and logged, for the report. It is recorded only if a report was asked for.

use std::collections::HashMap;

use tokio::time::Instant;

use crate::cdp::{Event, Kind};

/// The most requests that are recorded.
const MAX_REQUESTS: usize = 1000;

/// The most characters of a URL.
const MAX_URL_CHARS: usize = 2048;

/// The most lines of the console, and the most characters of one.
const MAX_LINES: usize = 100;
const MAX_LINE_CHARS: usize = 500;

/// A request of the page. Following a redirect is another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordedRequest {
    pub(crate) url: String,
    pub(crate) kind: Kind,
    /// Whether it is for a document of the main frame.
    pub(crate) is_navigation: bool,
    pub(crate) started_at: Instant,
    /// When it was answered completely, failed, or was redirected.
    pub(crate) ended_at: Option<Instant>,
    /// The HTTP status.
    pub(crate) status: Option<u16>,
    /// Decoded bytes of the body.
    pub(crate) bytes: u64,
    /// The browser's error code.
    pub(crate) error: Option<String>,
}

/// A line of the console.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordedLine {
    /// What logged it: `javascript`, `network`, `console-api` and others.
    pub(crate) source: String,
    pub(crate) text: String,
}

/// What a page requested and logged.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    pub(crate) requests: Vec<RecordedRequest>,
    /// The number of requests beyond the limit.
    pub(crate) omitted: u32,
    pub(crate) console: Vec<RecordedLine>,
    /// The last request of each id.
    open: HashMap<String, usize>,
}

impl Record {
    pub(super) fn note(&mut self, event: &Event, main_frame: &str, now: Instant) {
        match event {
            Event::RequestStarted { request, loader, frame, kind, url, redirected } => {
                if let Some(before) = self.open(request) {
                    before.status = before.status.or(*redirected);
                    before.ended_at.get_or_insert(now);
                }
                // The content of these is in the URL.
                if !url.starts_with("data:") {
                    let is_navigation =
                        *kind == Kind::Document && request == loader && frame.as_deref() == Some(main_frame);
                    self.begin(request, url, *kind, is_navigation, now);
                }
            }
            Event::ResponseReceived { request, head, .. } => {
                if let Some(open) = self.open(request) {
                    open.status = Some(head.status);
                }
            }
            Event::DataReceived { request, bytes } => {
                if let Some(open) = self.open(request) {
                    open.bytes = open.bytes.saturating_add(*bytes);
                }
            }
            Event::RequestFinished { request } => self.end(request, None, now),
            Event::RequestFailed { request, error } => self.end(request, Some(error), now),
            Event::Logged { source, text } if self.console.len() < MAX_LINES => {
                let line = RecordedLine { source: source.clone(), text: shortened(text, MAX_LINE_CHARS) };
                // Both domains of the browser may report it.
                if !self.console.contains(&line) {
                    self.console.push(line);
                }
            }
            Event::Logged { .. }
            | Event::FrameNavigated { .. }
            | Event::NavigatedWithinDocument { .. }
            | Event::DomContentLoaded
            | Event::Loaded
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

    fn open(&mut self, request: &str) -> Option<&mut RecordedRequest> {
        self.requests.get_mut(*self.open.get(request)?)
    }

    fn begin(&mut self, request: &str, url: &str, kind: Kind, is_navigation: bool, now: Instant) {
        if self.requests.len() == MAX_REQUESTS {
            self.omitted = self.omitted.saturating_add(1);
            self.open.remove(request);
            return;
        }
        self.open.insert(request.to_owned(), self.requests.len());
        self.requests.push(RecordedRequest {
            url: shortened(url, MAX_URL_CHARS),
            kind,
            is_navigation,
            started_at: now,
            ended_at: None,
            status: None,
            bytes: 0,
            error: None,
        });
    }

    fn end(&mut self, request: &str, error: Option<&String>, now: Instant) {
        if let Some(open) = self.open(request) {
            open.ended_at = Some(now);
            open.error = error.cloned();
        }
        self.open.remove(request);
    }
}

/// The first characters, without control characters.
fn shortened(text: &str, chars: usize) -> String {
    text.chars().take(chars).filter(|char| !char.is_control() || *char == '\n').collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cdp::Head;

    fn started(request: &str, kind: Kind, url: &str, redirected: Option<u16>) -> Event {
        let (request, loader) = (request.to_owned(), request.to_owned());
        Event::RequestStarted { request, loader, frame: Some("main".into()), kind, url: url.into(), redirected }
    }

    fn record(events: impl IntoIterator<Item = Event>) -> Record {
        let (mut record, now) = (Record::default(), Instant::now());
        events.into_iter().for_each(|event| record.note(&event, "main", now));
        record
    }

    #[test]
    fn redirects_are_requests_of_their_own() {
        let head = Head { status: 200, ..Head::default() };
        let answer = Event::ResponseReceived {
            request: "1".into(),
            loader: "1".into(),
            kind: Kind::Document,
            head,
            length: None,
        };
        let record = record([
            started("1", Kind::Document, "https://a/", None),
            started("1", Kind::Document, "https://b/", Some(301)),
            answer,
            Event::DataReceived { request: "1".into(), bytes: 7 },
            Event::RequestFinished { request: "1".into() },
            started("2", Kind::Image, "data:image/png;base64,", None),
            started("3", Kind::Image, "https://c/", None),
            Event::RequestFailed { request: "3".into(), error: "net::ERR_FAILED".into() },
        ]);
        let seen: Vec<_> = record.requests.iter().map(|of| (of.url.as_str(), of.status, of.bytes)).collect();
        assert_eq!(seen, [("https://a/", Some(301), 0), ("https://b/", Some(200), 7), ("https://c/", None, 0)]);
        assert!(record.requests.iter().all(|of| of.ended_at.is_some()));
        assert_eq!(record.requests.iter().filter(|of| of.is_navigation).count(), 2);
        assert_eq!(record.requests[2].error.as_deref(), Some("net::ERR_FAILED"));
    }

    #[test]
    fn record_is_bounded() {
        let url = format!("https://a/{}", "é".repeat(5000));
        let many = (0..1005).map(|at| started(&at.to_string(), Kind::Image, &url, None));
        let lines = (0..200).map(|at| Event::Logged { source: "javascript".into(), text: format!("{at}\0{url}") });
        let record = record(many.chain(lines));
        assert_eq!((record.requests.len(), record.omitted, record.console.len()), (1000, 5, 100));
        assert_eq!(record.requests[0].url.chars().count(), MAX_URL_CHARS);
        assert!(record.console.iter().all(|line| line.text.chars().count() <= MAX_LINE_CHARS));
    }
}
