//! What a page requested and logged, for the report and the archive of requests. It is recorded only if one of them was asked
//! for.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::cdp::{Event, Kind, RequestDetails, ResponseDetails, SecurityDetails};

/// The most requests that are recorded.
const MAX_REQUESTS: usize = 2000;

/// The most headers of a message, the most characters of their names and values, and the most bytes of all of them.
const MAX_HEADERS: usize = 100;
const MAX_NAME_CHARS: usize = 128;
const MAX_VALUE_CHARS: usize = 2048;
const MAX_HEADER_BYTES: usize = 4 << 20;

/// The most characters of the method, the status text, the media type and the protocol.
const MAX_WORD_CHARS: usize = 100;

/// The most characters of the name of an authority.
const MAX_ISSUER_CHARS: usize = 200;

/// The dates from 1970 to 9999, in seconds. Others cannot be written.
const VALID_SECONDS: RangeInclusive<f64> = 0.0..=253_402_300_799.0;

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
    /// When the head of its response came.
    pub(crate) answered_at: Option<Instant>,
    /// When it was answered completely, failed, or was redirected.
    pub(crate) ended_at: Option<Instant>,
    /// The HTTP status.
    pub(crate) status: Option<u16>,
    /// Decoded bytes of the body.
    pub(crate) bytes: u64,
    /// The browser's error code.
    pub(crate) error: Option<String>,
    /// The heads of request and response, if all are recorded or if it is for a document of the main frame.
    pub(crate) exchange: Option<Box<Exchange>>,
}

/// The heads of a request and of its response. Those of a request are without cookies, and without what the caller adds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Exchange {
    pub(crate) method: String,
    /// When it began, in milliseconds since 1970.
    pub(crate) began_ms: i64,
    pub(crate) request_headers: Vec<(String, String)>,
    pub(crate) status_text: String,
    pub(crate) media_type: String,
    pub(crate) protocol: String,
    /// Of the encrypted connection, if it is one.
    pub(crate) tls: Option<TlsDetails>,
    pub(crate) response_headers: Vec<(String, String)>,
}

/// What is known about the encrypted connection of a response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TlsDetails {
    /// `TLS 1.3` and others.
    pub(crate) protocol: String,
    /// The common name of the authority that has issued the certificate.
    pub(crate) issuer: String,
    /// When the certificate expires, in seconds since 1970. `None` if that is no date.
    pub(crate) valid_until: Option<i64>,
}

impl TlsDetails {
    fn of(details: &SecurityDetails) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "checked just before")]
        let valid_until = VALID_SECONDS.contains(&details.valid_to).then_some(details.valid_to as i64);
        Self {
            protocol: shortened(&details.protocol, MAX_WORD_CHARS),
            issuer: shortened(&details.issuer, MAX_ISSUER_CHARS),
            valid_until,
        }
    }
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
    /// Whether the heads of all requests and responses are recorded.
    with_exchanges: bool,
    /// Bytes of all recorded headers.
    header_bytes: usize,
}

impl Record {
    pub(super) fn new(with_exchanges: bool) -> Self {
        Self { with_exchanges, ..Self::default() }
    }

    pub(super) fn note(&mut self, event: &Event, main_frame: &str, now: Instant) {
        match event {
            Event::RequestStarted { request, loader, frame, kind, url, redirected, details } => {
                if let Some(before) = self.open(request) {
                    before.status = before.status.or(*redirected);
                    before.answered_at.get_or_insert(now);
                    before.ended_at.get_or_insert(now);
                }
                if let Some(redirect) = &details.redirect {
                    self.add_answer(request, redirect);
                }
                // The content of these is in the URL.
                if !url.starts_with("data:") {
                    let is_navigation =
                        *kind == Kind::Document && request == loader && frame.as_deref() == Some(main_frame);
                    self.begin(request, url, *kind, is_navigation, now);
                    if is_navigation || self.with_exchanges {
                        self.add_request(request, details);
                    }
                }
            }
            Event::ResponseReceived { request, head, details, .. } => {
                if let Some(open) = self.open(request) {
                    open.status = Some(head.status);
                    open.answered_at = Some(now);
                }
                self.add_answer(request, details);
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
            answered_at: None,
            ended_at: None,
            status: None,
            bytes: 0,
            error: None,
            exchange: None,
        });
    }

    /// Adds the head of a request, unless there are too many.
    fn add_request(&mut self, request: &str, details: &RequestDetails) {
        if !self.open.contains_key(request) {
            return;
        }
        let headers: Map<String, Value> =
            details.headers.as_deref().and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default();
        let request_headers = self.take_headers(&headers);
        if let Some(open) = self.open(request) {
            open.exchange = Some(Box::new(Exchange {
                method: shortened(&details.method, MAX_WORD_CHARS),
                began_ms: details.began_ms,
                request_headers,
                ..Exchange::default()
            }));
        }
    }

    /// Adds the head of a response, if that of its request is recorded.
    fn add_answer(&mut self, request: &str, details: &ResponseDetails) {
        if self.open(request).is_none_or(|open| open.exchange.is_none()) {
            return;
        }
        let response_headers = self.take_headers(&details.headers);
        if let Some(exchange) = self.open(request).and_then(|open| open.exchange.as_deref_mut()) {
            exchange.response_headers = response_headers;
            exchange.status_text = shortened(&details.status_text, MAX_WORD_CHARS);
            exchange.media_type = shortened(&details.media_type, MAX_WORD_CHARS);
            exchange.protocol = shortened(&details.protocol, MAX_WORD_CHARS);
            exchange.tls = details.security.as_ref().map(TlsDetails::of);
        }
    }

    /// Headers within all bounds. There are none once all headers together have too many bytes.
    fn take_headers(&mut self, headers: &Map<String, Value>) -> Vec<(String, String)> {
        let mut taken = Vec::new();
        for (name, value) in headers.iter().take(MAX_HEADERS) {
            let Some(value) = value.as_str() else { continue };
            let header = (shortened(name, MAX_NAME_CHARS), shortened(value, MAX_VALUE_CHARS));
            self.header_bytes = self.header_bytes.saturating_add(header.0.len() + header.1.len());
            if self.header_bytes > MAX_HEADER_BYTES {
                break;
            }
            taken.push(header);
        }
        taken
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
    text.chars().filter(|char| !char.is_control() || *char == '\n').take(chars).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cdp::Head;

    fn started(request: &str, kind: Kind, url: &str, redirected: Option<u16>) -> Event {
        let (request, loader) = (request.to_owned(), request.to_owned());
        let (frame, url, details) = (Some("main".into()), url.into(), Box::default());
        Event::RequestStarted { request, loader, frame, kind, url, redirected, details }
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
            details: Box::default(),
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
        let has_heads: Vec<bool> = record.requests.iter().map(|of| of.exchange.is_some()).collect();
        assert_eq!(has_heads, [true, true, false], "those of documents are always recorded");
    }

    #[test]
    fn tls_of_documents_is_bounded() {
        let security = |valid_to| SecurityDetails { protocol: "TLS 1.3".into(), issuer: "a".repeat(500), valid_to };
        let recorded = |valid_to| {
            let details = ResponseDetails { security: Some(security(valid_to)), ..ResponseDetails::default() };
            let answer = Event::ResponseReceived {
                request: "1".into(),
                loader: "1".into(),
                kind: Kind::Document,
                head: Head { status: 200, ..Head::default() },
                length: None,
                details: Box::new(details),
            };
            let mut record = record([started("1", Kind::Document, "https://a/", None), answer]);
            record.requests.remove(0).exchange.and_then(|exchange| exchange.tls).unwrap()
        };
        let tls = recorded(1_800_000_000.0);
        assert_eq!(
            (&*tls.protocol, tls.issuer.len(), tls.valid_until),
            ("TLS 1.3", MAX_ISSUER_CHARS, Some(1_800_000_000))
        );
        assert_eq!([-1.0, 1e12, f64::NAN].map(|seconds| recorded(seconds).valid_until), [None; 3]);
    }

    #[test]
    fn headers_are_bounded_one_by_one_and_together() {
        let headers: Map<String, Value> =
            (0..200).map(|at| (format!("{at}{}", "n".repeat(500)), "v".repeat(5000).into())).collect();
        let mut record = Record::new(true);
        let taken = record.take_headers(&headers);
        assert_eq!(taken.len(), MAX_HEADERS);
        assert!(taken.iter().all(|(name, value)| (name.len(), value.len()) == (MAX_NAME_CHARS, MAX_VALUE_CHARS)));
        (0..100).for_each(|_| _ = record.take_headers(&headers));
        assert!(record.take_headers(&headers).is_empty());
    }

    #[test]
    fn record_is_bounded() {
        let url = format!("https://a/{}", "é".repeat(5000));
        let many = (0..2005).map(|at| started(&at.to_string(), Kind::Image, &url, None));
        let lines = (0..200).map(|at| Event::Logged { source: "javascript".into(), text: format!("{at}\0{url}") });
        let record = record(many.chain(lines));
        assert_eq!((record.requests.len(), record.omitted, record.console.len()), (2000, 5, 100));
        assert_eq!(record.requests[0].url.chars().count(), MAX_URL_CHARS);
        assert!(record.console.iter().all(|line| line.text.chars().count() <= MAX_LINE_CHARS));
    }
}
