//! The archive of the page's requests, as HAR 1.2: heads and times, without bodies and without secrets.

use grabd_domain::capture::FileKind;
use grabd_domain::grabs::RenderMetadata;
use grabd_domain::timestamp::Timestamp;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::time::Instant;
use url::Url;

use crate::page::context::CaptureContext;
use crate::page::findings::report::{kind_name, milliseconds};
use crate::page::findings::secret_filter::{Header, SecretFilter};
use crate::page::load::watch::{Exchange, Record, RecordedRequest};

/// The bytes of the archive that are not entries.
const FRAME_BYTES: u64 = 64 << 10;

/// The id of the only page.
const PAGE: &str = "page_1";

/// A size that is not known, as HAR has it.
const UNKNOWN_SIZE: i64 = -1;

#[derive(Serialize)]
struct Archive<'a> {
    log: Log<'a>,
}

#[derive(Serialize)]
struct Log<'a> {
    version: &'static str,
    creator: Creator,
    pages: [Page<'a>; 1],
    entries: Vec<Box<RawValue>>,
    /// The number of requests that are not listed.
    #[serde(rename = "_requestsOmitted")]
    omitted: u32,
    comment: String,
}

#[derive(Serialize)]
struct Creator {
    name: &'static str,
    version: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a> {
    started_date_time: String,
    id: &'static str,
    title: &'a str,
    page_timings: PageTimings,
}

/// What happened when, in milliseconds from the beginning.
#[derive(Clone, Copy, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct PageTimings {
    #[serde(skip_serializing_if = "Option::is_none")]
    on_content_load: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_load: Option<u64>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    pageref: &'static str,
    started_date_time: String,
    /// How long it took in milliseconds: the sum of the times.
    time: u64,
    request: Request<'a>,
    response: Response<'a>,
    cache: Cache,
    timings: Timings,
    #[serde(rename = "_resourceType")]
    kind: &'static str,
    /// The browser's error code.
    #[serde(rename = "_error", skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    method: &'a str,
    url: &'a str,
    http_version: &'a str,
    /// Always empty.
    cookies: [Header; 0],
    headers: Vec<Header>,
    query_string: Vec<Header>,
    headers_size: i64,
    body_size: i64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    /// 0 if there was none.
    status: u16,
    status_text: &'a str,
    http_version: &'a str,
    /// Always empty.
    cookies: [Header; 0],
    headers: Vec<Header>,
    content: Content<'a>,
    #[serde(rename = "redirectURL")]
    redirect_url: String,
    headers_size: i64,
    body_size: i64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Content<'a> {
    /// Decoded bytes of the body.
    size: u64,
    mime_type: &'a str,
}

/// Nothing is known about caches.
#[derive(Serialize)]
struct Cache {}

/// Times in milliseconds. The time until the head of the response has the connection and the sending in it.
#[derive(Serialize)]
struct Timings {
    send: u64,
    wait: u64,
    receive: u64,
}

/// Writes the archive of the requests up to now. It is empty if nothing was recorded.
pub(super) fn write(context: &CaptureContext<'_>, metadata: &RenderMetadata) -> Vec<u8> {
    let (record, parsed_at, loaded_at) =
        context.tab.watch.read(|seen| (seen.record.clone().unwrap_or_default(), seen.parsed_at, seen.loaded_at));
    let since = |at: Instant| milliseconds(context.began, at);
    let timings = PageTimings { on_content_load: parsed_at.map(since), on_load: loaded_at.map(since) };
    let title = metadata.page.title.as_deref().unwrap_or_default();
    let filter = SecretFilter::of(&context.spec.secrets);
    archive(&record, &filter.text(title), timings, &filter)
}

fn archive(record: &Record, title: &str, page_timings: PageTimings, filter: &SecretFilter) -> Vec<u8> {
    let most = usize::try_from(FileKind::Har.max_bytes().saturating_sub(FRAME_BYTES)).unwrap_or(usize::MAX);
    let (mut entries, mut bytes, mut omitted) = (Vec::new(), 0_usize, record.omitted);
    for request in &record.requests {
        // All have heads where an archive was asked for.
        let Some(exchange) = &request.exchange else { continue };
        let Ok(entry) = entry(request, exchange, filter) else { continue };
        bytes = bytes.saturating_add(entry.get().len() + 1);
        if bytes > most {
            omitted = omitted.saturating_add(1);
        } else {
            entries.push(entry);
        }
    }
    let first = record.requests.iter().find_map(|request| request.exchange.as_ref()).map_or(0, |first| first.began_ms);
    let page = Page { started_date_time: date_time(first), id: PAGE, title, page_timings };
    let log = Log {
        version: "1.2",
        creator: Creator { name: "grabd", version: env!("CARGO_PKG_VERSION") },
        pages: [page],
        entries,
        omitted,
        comment: format!("Bodies, cookies and credentials are left out, and {omitted} further requests."),
    };
    serde_json::to_vec(&Archive { log }).unwrap_or_default()
}

fn entry(request: &RecordedRequest, exchange: &Exchange, filter: &SecretFilter) -> serde_json::Result<Box<RawValue>> {
    let url = filter.url(&request.url);
    let answered_at = request.answered_at.or(request.ended_at);
    let wait = answered_at.map_or(0, |answered| milliseconds(request.started_at, answered));
    let receive = answered_at.zip(request.ended_at).map_or(0, |(answered, ended)| milliseconds(answered, ended));
    let http_version = if exchange.protocol.is_empty() { "unknown" } else { exchange.protocol.as_str() };
    let location = exchange.response_headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("location"));
    let is_redirect = request.status.is_some_and(|status| (300..400).contains(&status));
    let redirect_url = location.filter(|_| is_redirect).map(|(_, url)| filter.url(url)).unwrap_or_default();
    to_raw_value(&Entry {
        pageref: PAGE,
        started_date_time: date_time(exchange.began_ms),
        time: wait.saturating_add(receive),
        request: Request {
            method: &exchange.method,
            url: &url,
            http_version,
            cookies: [],
            headers: filter.headers(&exchange.request_headers),
            query_string: query(&url),
            headers_size: UNKNOWN_SIZE,
            body_size: UNKNOWN_SIZE,
        },
        response: Response {
            status: request.status.unwrap_or(0),
            status_text: &exchange.status_text,
            http_version,
            cookies: [],
            headers: filter.headers(&exchange.response_headers),
            content: Content { size: request.bytes, mime_type: &exchange.media_type },
            redirect_url,
            headers_size: UNKNOWN_SIZE,
            body_size: UNKNOWN_SIZE,
        },
        cache: Cache {},
        timings: Timings { send: 0, wait, receive },
        kind: kind_name(request.kind),
        error: request.error.as_deref(),
    })
}

/// The parameters of a URL.
fn query(url: &str) -> Vec<Header> {
    let Ok(url) = Url::parse(url) else { return Vec::new() };
    url.query_pairs().map(|(name, value)| Header { name: name.into_owned(), value: value.into_owned() }).collect()
}

fn date_time(ms: i64) -> String {
    Timestamp::from_ms(ms).to_string()
}

#[cfg(test)]
mod tests {
    use grabd_domain::capture::{CaptureRequest, CaptureSpec};
    use serde_json::{Value, json};

    use super::*;
    use crate::cdp::Kind;

    fn filter() -> SecretFilter {
        let request = CaptureRequest { url: Some("https://example.com/".into()), ..CaptureRequest::default() };
        SecretFilter::of(&CaptureSpec::parse(&request).unwrap().secrets)
    }

    fn request(url: String) -> RecordedRequest {
        let now = Instant::now();
        let headers = vec![("content-type".to_owned(), "text/html".to_owned())];
        RecordedRequest {
            url,
            kind: Kind::Document,
            is_navigation: true,
            started_at: now,
            answered_at: Some(now + std::time::Duration::from_millis(5)),
            ended_at: Some(now + std::time::Duration::from_millis(12)),
            status: Some(200),
            bytes: 7,
            error: None,
            exchange: Some(Box::new(Exchange {
                method: "GET".into(),
                began_ms: 1_000,
                media_type: "text/html".into(),
                protocol: "h2".into(),
                response_headers: headers,
                ..Exchange::default()
            })),
        }
    }

    fn written(requests: Vec<RecordedRequest>) -> (Value, usize) {
        let mut record = Record::default();
        record.requests.extend(requests);
        let bytes = archive(&record, "Page", PageTimings::default(), &filter());
        (serde_json::from_slice(&bytes).unwrap(), bytes.len())
    }

    #[test]
    fn entry_has_heads_sizes_and_times() {
        let (archive, _) = written(vec![request("https://example.com/?a=1&b=%20c".into())]);
        let log = &archive["log"];
        assert_eq!((&log["version"], &log["_requestsOmitted"]), (&json!("1.2"), &json!(0)));
        assert_eq!(log["pages"][0]["startedDateTime"], "1970-01-01T00:00:01.000Z");
        let entry = &log["entries"][0];
        assert_eq!(entry["time"], 12);
        assert_eq!(entry["timings"], json!({ "send": 0, "wait": 5, "receive": 7 }));
        assert_eq!(entry["request"]["queryString"][1], json!({ "name": "b", "value": " c" }));
        assert_eq!(entry["response"]["content"], json!({ "size": 7, "mimeType": "text/html" }));
        assert_eq!(entry["response"]["headers"], json!([{ "name": "content-type", "value": "text/html" }]));
    }

    #[test]
    fn archive_has_at_most_the_bytes_of_its_kind_and_says_what_is_left_out() {
        let url = format!("https://example.com/?{}", "a&".repeat(1000));
        let (archive, bytes) = written((0..2000).map(|_| request(url.clone())).collect());
        assert!(bytes as u64 <= FileKind::Har.max_bytes(), "{bytes}");
        let listed = archive["log"]["entries"].as_array().unwrap().len() as u64;
        assert_eq!(archive["log"]["_requestsOmitted"].as_u64().unwrap() + listed, 2000);
    }
}
