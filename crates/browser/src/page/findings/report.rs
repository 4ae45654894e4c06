//! The report: what happened during a capture, as JSON.

use chromiumoxide::cdp::browser_protocol::log;
use chromiumoxide::types::MethodId;
use chromiumoxide::{Command, Method};
use grabd_domain::grabs::{RenderMetadata, SettledBy};
use grabd_domain::timestamp::Timestamp;
use serde::Serialize;
use tokio::time::Instant;
use url::Url;

use crate::cdp::{CallError, Kind};
use crate::page::context::CaptureContext;
use crate::page::findings::secret_filter::{Header, SecretFilter};
use crate::page::findings::vitals::{self, WebVitals};
use crate::page::load::watch::{Record, RecordedRequest, TlsDetails};
use crate::page::script::millis;

/// The most requests in a report.
const MAX_REQUESTS: usize = 1000;

/// The browser's error for requests that the caller's options block.
const BLOCKED_BY_CLIENT: &str = "net::ERR_BLOCKED_BY_CLIENT";

#[derive(Serialize)]
struct Report<'a> {
    /// The documents of the main frame, redirects included.
    navigation: Vec<NavigationStep<'a>>,
    /// The response with the last of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<DocumentResponse<'a>>,
    /// How fast the document was shown. What is not known is null.
    web_vitals: WebVitals,
    requests: Vec<ReportedRequest<'a>>,
    /// The number of requests that are not listed.
    requests_omitted: u32,
    /// Errors that the page logged, and those of the browser about the page. Exceptions that nobody caught are reported
    /// only by the `Runtime` domain, which pages can notice.
    console: Vec<ConsoleLine<'a>>,
    /// URLs of web fonts that failed to load.
    fonts_failed: Vec<String>,
    settled_by: Option<&'static str>,
    /// What happened when, in milliseconds from the beginning.
    timeline: Vec<Moment>,
    warnings: Vec<String>,
    /// The browser and its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    browser: Option<String>,
}

#[derive(Serialize)]
struct NavigationStep<'a> {
    url: String,
    status: Option<u16>,
    /// How long it took.
    ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

/// The head of a response.
#[derive(Serialize)]
struct DocumentResponse<'a> {
    /// `h2` and others. Empty if it is not known.
    protocol: &'a str,
    media_type: &'a str,
    /// How long it took until it came, from the beginning of the request.
    ttfb_ms: Option<u64>,
    /// Of its encrypted connection. Null without one.
    tls: Option<Tls<'a>>,
    /// Without cookies, credentials and secrets of the caller.
    headers: Vec<Header>,
}

/// What is known about an encrypted connection.
#[derive(Serialize)]
struct Tls<'a> {
    /// `TLS 1.3` and others.
    protocol: &'a str,
    /// The common name of the authority that has issued the certificate.
    issuer: &'a str,
    /// When the certificate expires.
    valid_until: Option<String>,
}

impl<'a> Tls<'a> {
    fn of(TlsDetails { protocol, issuer, valid_until }: &'a TlsDetails) -> Self {
        let valid_until = valid_until.map(|seconds| Timestamp::from_ms(seconds.saturating_mul(1000)).to_string());
        Self { protocol, issuer, valid_until }
    }
}

#[derive(Serialize)]
struct ReportedRequest<'a> {
    url: String,
    #[serde(rename = "type")]
    kind: &'static str,
    status: Option<u16>,
    /// When it began.
    start_ms: u64,
    /// How long it took. Null if it had not ended.
    ms: Option<u64>,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped_by: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

#[derive(Serialize)]
struct ConsoleLine<'a> {
    source: &'a str,
    text: String,
}

#[derive(Serialize)]
struct Moment {
    event: &'static str,
    ms: u64,
}

/// Reports errors that the page logs. The bindings leave out the domain, which is as old as the protocol. The one that
/// they have instead is `Runtime`, which pages can notice.
#[derive(Debug, Serialize)]
struct EnableConsole {}

impl Method for EnableConsole {
    fn identifier(&self) -> MethodId {
        "Console.enable".into()
    }
}

impl Command for EnableConsole {
    type Response = serde_json::Value;
}

/// Asks for events about errors, before the navigation.
///
/// # Errors
/// If the browser does not answer.
pub(in crate::page) async fn enable(context: &CaptureContext<'_>) -> Result<(), CallError> {
    let (client, session) = (&context.tab.client, Some(context.tab.session.as_str()));
    client.call(session, log::EnableParams::default()).await?;
    client.call(session, EnableConsole {}).await.map(drop)
}

/// Reads how fast the current document was shown, if a report was asked for. See [`vitals::read`].
pub(in crate::page) async fn read_vitals(context: &CaptureContext<'_>, has_real_time: bool) {
    if !context.spec.has_report() {
        return;
    }
    let known = match context.is_late() {
        // It is still busy.
        true => WebVitals::default(),
        false => vitals::read(context.tab, has_real_time).await,
    };
    context.set_vitals(known);
}

/// Writes the report about the capture up to now. It is empty if nothing was recorded.
pub(in crate::page) fn write(context: &CaptureContext<'_>, metadata: &RenderMetadata) -> Vec<u8> {
    let (record, moments, navigation_blocked) = context.tab.watch.read(|seen| {
        let moments = [("document", seen.committed_at), ("parsed", seen.parsed_at), ("loaded", seen.loaded_at)];
        (seen.record.clone().unwrap_or_default(), moments, seen.navigation_blocked)
    });
    let since = |at: Instant| milliseconds(context.began, at);
    let settled_ms = metadata.timings.map(|timings| {
        let until_load = u64::from(timings.navigate_ms) + u64::from(timings.load_ms.unwrap_or(0));
        until_load + u64::from(timings.settle_ms)
    });
    let mut timeline: Vec<Moment> =
        moments.into_iter().filter_map(|(event, at)| Some(Moment { event, ms: since(at?) })).collect();
    timeline.extend(settled_ms.map(|ms| Moment { event: "settled", ms }));
    let stopped_by = |request: &RecordedRequest| {
        let error = request.error.as_deref()?;
        let url = Url::parse(&request.url).ok()?;
        let was_refused =
            |port| context.tab.listener.was_refused(url.host_str()?.trim_matches(['[', ']']), port).then_some(());
        match url.port_or_known_default().and_then(was_refused) {
            Some(()) => Some("guard"),
            None if error.starts_with(BLOCKED_BY_CLIENT) || context.is_listed(&request.url) => Some("asked"),
            None if request.is_navigation && navigation_blocked => Some("limit"),
            None => None,
        }
    };
    let filter = SecretFilter::of(&context.spec.secrets);
    let mut report = report(&record, (metadata, context.vitals()), timeline, &filter, since, stopped_by);
    report.browser = context.tab.identity.browser();
    serde_json::to_vec(&report).unwrap_or_default()
}

fn report<'a>(
    record: &'a Record,
    (metadata, web_vitals): (&RenderMetadata, WebVitals),
    timeline: Vec<Moment>,
    filter: &SecretFilter,
    since: impl Fn(Instant) -> u64,
    stopped_by: impl Fn(&RecordedRequest) -> Option<&'static str>,
) -> Report<'a> {
    let took = |request: &RecordedRequest| request.ended_at.map(|ended| milliseconds(request.started_at, ended));
    let requests = &record.requests[..record.requests.len().min(MAX_REQUESTS)];
    let further = u32::try_from(record.requests.len() - requests.len()).unwrap_or(u32::MAX);
    let navigation = requests.iter().filter(|request| request.is_navigation);
    let document = navigation.clone().next_back().and_then(|request| Some((request, request.exchange.as_deref()?)));
    let response = document.map(|(request, exchange)| DocumentResponse {
        protocol: &exchange.protocol,
        media_type: &exchange.media_type,
        ttfb_ms: request.answered_at.map(|answered| milliseconds(request.started_at, answered)),
        tls: exchange.tls.as_ref().map(Tls::of),
        headers: filter.headers(&exchange.response_headers),
    });
    Report {
        navigation: navigation
            .map(|request| NavigationStep {
                url: filter.url(&request.url),
                status: request.status,
                ms: took(request),
                error: request.error.as_deref(),
            })
            .collect(),
        response,
        web_vitals,
        requests: requests
            .iter()
            .map(|request| ReportedRequest {
                url: filter.url(&request.url),
                kind: kind_name(request.kind),
                status: request.status,
                start_ms: since(request.started_at),
                ms: took(request),
                bytes: request.bytes,
                stopped_by: stopped_by(request),
                error: request.error.as_deref(),
            })
            .collect(),
        requests_omitted: record.omitted.saturating_add(further),
        console: record
            .console
            .iter()
            .map(|line| ConsoleLine { source: &line.source, text: filter.text(&line.text) })
            .collect(),
        fonts_failed: requests
            .iter()
            .filter(|request| request.kind == Kind::Font && has_failed(request))
            .map(|request| filter.url(&request.url))
            .collect(),
        settled_by: metadata.settled_by.map(SettledBy::as_str),
        timeline,
        warnings: metadata.warnings.iter().map(ToString::to_string).collect(),
        browser: None,
    }
}

fn has_failed(request: &RecordedRequest) -> bool {
    request.error.is_some() || request.status.is_some_and(|status| status >= 400)
}

/// The name of a type of request.
pub(super) const fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Document => "document",
        Kind::Data => "data",
        Kind::Events => "events",
        Kind::Script | Kind::Worker => "script",
        Kind::Style => "stylesheet",
        Kind::Image => "image",
        Kind::Font => "font",
        Kind::Socket => "websocket",
        Kind::Other => "other",
    }
}

/// Milliseconds between two times.
pub(super) fn milliseconds(from: Instant, to: Instant) -> u64 {
    millis(to.saturating_duration_since(from))
}
