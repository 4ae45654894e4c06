//! The events that a render uses, with the members that it needs.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::head::{Head, RequestDetails, Response, ResponseDetails};
use super::robots_tag::opts_out;

/// An event of a page.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Event {
    /// A frame committed a new document.
    FrameNavigated { frame: String, is_main: bool, loader: String, url: String, unreachable_url: Option<String> },
    /// The URL changed within the same document.
    NavigatedWithinDocument { frame: String, url: String },
    /// The main document was parsed.
    DomContentLoaded,
    /// The main document and its subresources were loaded.
    Loaded,
    /// A request started, or followed a redirect.
    RequestStarted {
        request: String,
        loader: String,
        frame: Option<String>,
        kind: Kind,
        url: String,
        /// The status of the redirect that it follows.
        redirected: Option<u16>,
        details: Box<RequestDetails>,
    },
    /// Response headers arrived. `length` is the body's length if it is known and the body is not compressed.
    ResponseReceived {
        request: String,
        loader: String,
        kind: Kind,
        head: Head,
        length: Option<u64>,
        details: Box<ResponseDetails>,
    },
    /// Part of a response body arrived. `bytes` counts decompressed bytes.
    DataReceived { request: String, bytes: u64 },
    /// A request succeeded.
    RequestFinished { request: String },
    /// A request failed.
    RequestFailed { request: String, error: String },
    /// A WebSocket was opened.
    SocketOpened { request: String },
    /// The page sent a WebSocket message.
    SocketSent { request: String },
    /// A WebSocket message or a server-sent event arrived.
    MessageReceived { request: String },
    /// A WebSocket was closed, or could not be opened.
    SocketClosed { request: String },
    /// A dialog blocks the page.
    DialogOpened { is_before_unload: bool },
    /// A download started, which the browser is configured to deny.
    DownloadBegan,
    /// An intercepted request waits for a decision.
    RequestPaused(PausedRequest),
    /// The page, or one of its workers, started a worker or a worklet. Shared workers are not reported.
    WorkerStarted { session: String, url: String },
    /// The headers of a response arrived. Unlike [`Event::ResponseReceived`], this is also reported for the scripts of
    /// workers.
    HeadersReceived { request: String },
    /// The page wanted to open a window, which the browser is configured to prevent. The URL is empty if a script would
    /// write its document.
    WindowPrevented { url: String },
    /// A database of the page has changed, if that is tracked.
    DatabaseChanged,
    /// The granted virtual time has passed.
    TimeBudgetExpired,
    /// The page, or the browser about the page, logged an error.
    Logged { source: String, text: String },
    /// The page's process crashed.
    Crashed,
    /// The session was detached.
    Detached,
}

/// A request that waits for a decision, before it is sent or after its response headers arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PausedRequest {
    /// Identifies the pause.
    pub(crate) id: String,
    /// Identifies the request in the other events. Requests of workers have none.
    pub(crate) request: Option<String>,
    /// The frame that it is for.
    pub(crate) frame: String,
    pub(crate) url: String,
    pub(crate) method: String,
    /// The browser's name of its type.
    pub(crate) kind: String,
    pub(crate) headers: Vec<(String, String)>,
    /// After the response headers: whether the site asks that no image of the document is made.
    pub(crate) opts_out: Option<bool>,
}

impl PausedRequest {
    /// Whether it is for a document of any frame.
    pub(crate) fn is_document(&self) -> bool {
        self.kind == "Document"
    }

    /// The URL of the document, style sheet or worker script that caused it. It may be hidden, but not forged.
    pub(crate) fn referrer(&self) -> Option<&str> {
        let referrer = self.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("referer"));
        referrer.map(|(_, url)| url.as_str())
    }
}

/// The type of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A document of any frame.
    Document,
    /// Data requested by a script, which may draw it.
    Data,
    /// Server-sent events.
    Events,
    /// Scripts of pages.
    Script,
    /// Scripts of workers. No event reports their end; the next event is the start of the worker, unless it is shared.
    Worker,
    /// Style sheets.
    Style,
    /// Images.
    Image,
    /// Fonts.
    Font,
    /// WebSockets.
    Socket,
    /// Requests that do not affect the image: pings, icons, media.
    Other,
}

impl Kind {
    fn parse(word: &str) -> Self {
        match word {
            "Document" => Self::Document,
            "Fetch" | "XHR" => Self::Data,
            "EventSource" => Self::Events,
            "Script" => Self::Script,
            "Stylesheet" => Self::Style,
            "Image" => Self::Image,
            "Font" => Self::Font,
            _ => Self::Other,
        }
    }
}

impl Event {
    /// Parses an event. `None` if it is not used.
    ///
    /// # Errors
    /// When the parameters do not match the protocol.
    pub(crate) fn parse(method: &str, params: &str) -> serde_json::Result<Option<Self>> {
        Ok(Some(match method {
            "Page.frameNavigated" => {
                let FrameNavigated { frame } = serde_json::from_str(params)?;
                Self::FrameNavigated {
                    is_main: frame.parent_id.is_none(),
                    frame: frame.id,
                    loader: frame.loader_id,
                    url: frame.url + frame.url_fragment.as_deref().unwrap_or_default(),
                    unreachable_url: frame.unreachable_url,
                }
            }
            "Page.navigatedWithinDocument" => {
                let WithinDocument { frame_id, url } = serde_json::from_str(params)?;
                Self::NavigatedWithinDocument { frame: frame_id, url }
            }
            "Page.domContentEventFired" => Self::DomContentLoaded,
            "Page.loadEventFired" => Self::Loaded,
            "Page.downloadWillBegin" => Self::DownloadBegan,
            "Page.javascriptDialogOpening" => {
                let Dialog { r#type } = serde_json::from_str(params)?;
                Self::DialogOpened { is_before_unload: r#type == "beforeunload" }
            }
            "Network.requestWillBeSent" => {
                let sent: RequestSent = serde_json::from_str(params)?;
                Self::RequestStarted {
                    request: sent.request_id,
                    loader: sent.loader_id,
                    frame: sent.frame_id,
                    kind: {
                        let kind = sent.r#type.as_deref().map_or(Kind::Other, Kind::parse);
                        // The browser itself requests the script of a worker.
                        let by_browser = sent.initiator.is_some_and(|by| by.r#type == "other");
                        if kind == Kind::Script && by_browser { Kind::Worker } else { kind }
                    },
                    url: sent.request.url,
                    redirected: sent.redirect_response.as_ref().map(|response| response.status),
                    details: Box::new(RequestDetails {
                        method: sent.request.method,
                        headers: sent.request.headers.map(Into::into),
                        began_ms: (sent.wall_time * 1000.0) as i64,
                        redirect: sent.redirect_response.map(Response::into_details),
                    }),
                }
            }
            "Network.responseReceived" => {
                let ResponseReceived { request_id, loader_id, r#type, response } = serde_json::from_str(params)?;
                let kind = Kind::parse(&r#type);
                // Only the headers of documents say something about the capture.
                let only_status = || Head { status: response.status, ..Head::default() };
                let head = if kind == Kind::Document { response.head() } else { only_status() };
                let length = if kind == Kind::Data { response.length() } else { None };
                let details = Box::new(response.into_details());
                Self::ResponseReceived { request: request_id, loader: loader_id, kind, head, length, details }
            }
            "Network.webSocketCreated" => {
                Self::SocketOpened { request: serde_json::from_str::<RequestRef>(params)?.request_id }
            }
            "Network.webSocketFrameSent" => {
                Self::SocketSent { request: serde_json::from_str::<RequestRef>(params)?.request_id }
            }
            "Network.webSocketFrameReceived" | "Network.eventSourceMessageReceived" => {
                Self::MessageReceived { request: serde_json::from_str::<RequestRef>(params)?.request_id }
            }
            "Network.webSocketClosed" => {
                Self::SocketClosed { request: serde_json::from_str::<RequestRef>(params)?.request_id }
            }
            "Network.dataReceived" => {
                let Data { request_id, data_length } = serde_json::from_str(params)?;
                Self::DataReceived { request: request_id, bytes: data_length }
            }
            "Network.loadingFinished" => {
                let Ended { request_id, .. } = serde_json::from_str(params)?;
                Self::RequestFinished { request: request_id }
            }
            "Network.loadingFailed" => {
                let Ended { request_id, error_text } = serde_json::from_str(params)?;
                Self::RequestFailed { request: request_id, error: error_text }
            }
            "Target.attachedToTarget" => {
                let Attached { session_id, target_info } = serde_json::from_str(params)?;
                match target_info.r#type.as_str() {
                    "worker" | "worklet" => Self::WorkerStarted { session: session_id, url: target_info.url },
                    _ => return Ok(None),
                }
            }
            "Network.responseReceivedExtraInfo" => {
                Self::HeadersReceived { request: serde_json::from_str::<RequestRef>(params)?.request_id }
            }
            "Page.windowOpen" => {
                let WindowOpen { url } = serde_json::from_str(params)?;
                Self::WindowPrevented { url }
            }
            "Storage.indexedDBListUpdated" | "Storage.indexedDBContentUpdated" => Self::DatabaseChanged,
            "Emulation.virtualTimeBudgetExpired" => Self::TimeBudgetExpired,
            "Fetch.requestPaused" => {
                let paused: Paused = serde_json::from_str(params)?;
                Self::RequestPaused(paused.into_request())
            }
            "Log.entryAdded" => {
                let LogEntryAdded { entry } = serde_json::from_str(params)?;
                return Ok(entry.into_event());
            }
            "Console.messageAdded" => {
                let ConsoleMessageAdded { message } = serde_json::from_str(params)?;
                return Ok(message.into_event());
            }
            "Inspector.targetCrashed" => Self::Crashed,
            "Target.detachedFromTarget" | "Inspector.detached" => Self::Detached,
            _ => return Ok(None),
        }))
    }
}

#[derive(Deserialize)]
struct FrameNavigated {
    frame: Frame,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Frame {
    id: String,
    parent_id: Option<String>,
    loader_id: String,
    url: String,
    url_fragment: Option<String>,
    unreachable_url: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WithinDocument {
    frame_id: String,
    url: String,
}

#[derive(Deserialize)]
struct WindowOpen {
    url: String,
}

#[derive(Deserialize)]
struct Dialog {
    r#type: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RequestSent {
    request_id: String,
    loader_id: String,
    frame_id: Option<String>,
    r#type: Option<String>,
    request: Request,
    initiator: Option<Initiator>,
    redirect_response: Option<Response>,
    #[serde(default)]
    wall_time: f64,
}

#[derive(Deserialize)]
struct LogEntryAdded {
    entry: LogEntry,
}

#[derive(Deserialize)]
struct ConsoleMessageAdded {
    message: LogEntry,
}

#[derive(Deserialize)]
struct LogEntry {
    source: String,
    level: String,
    text: String,
}

impl LogEntry {
    fn into_event(self) -> Option<Event> {
        let Self { source, level, text } = self;
        (level == "error").then_some(Event::Logged { source, text })
    }
}

#[derive(Deserialize)]
struct Initiator {
    r#type: String,
}

#[derive(Deserialize)]
struct Request {
    url: String,
    #[serde(default)]
    method: String,
    headers: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RequestRef {
    request_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Paused {
    request_id: String,
    network_id: Option<String>,
    frame_id: String,
    resource_type: String,
    request: PausedDetails,
    response_headers: Option<Vec<ResponseHeader>>,
}

#[derive(Deserialize)]
struct PausedDetails {
    url: String,
    #[serde(default)]
    method: String,
    #[serde(default)]
    headers: serde_json::Map<String, serde_json::Value>,
}

#[derive(Deserialize)]
struct ResponseHeader {
    name: String,
    value: String,
}

impl Paused {
    fn into_request(self) -> PausedRequest {
        let Self { request_id, network_id, frame_id, resource_type, request, response_headers } = self;
        let PausedDetails { url, method, headers } = request;
        let headers = headers.into_iter().filter_map(|(name, value)| Some((name, value.as_str()?.to_owned())));
        let is_opt_out =
            |header: &ResponseHeader| header.name.eq_ignore_ascii_case("x-robots-tag") && opts_out(&header.value);
        PausedRequest {
            id: request_id,
            request: network_id,
            frame: frame_id,
            url,
            method,
            kind: resource_type,
            headers: headers.collect(),
            opts_out: response_headers.map(|headers| headers.iter().any(is_opt_out)),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResponseReceived {
    request_id: String,
    loader_id: String,
    r#type: String,
    response: Response,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Attached {
    session_id: String,
    target_info: Target,
}

#[derive(Deserialize)]
struct Target {
    r#type: String,
    url: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    request_id: String,
    data_length: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Ended {
    request_id: String,
    #[serde(default)]
    error_text: String,
}

#[cfg(test)]
mod tests {
    use grabd_domain::grabs::Challenge;

    use super::*;

    #[test]
    fn document_response_is_parsed_with_its_headers() {
        let params = r#"{"requestId":"1","loaderId":"L","timestamp":1.5,"type":"Document","response":{"url":"http://a/",
            "status":403,"statusText":"","headers":{"CF-Mitigated":"challenge","Refresh":"1","content-disposition":"attachment; x",
            "X-Robots-Tag":"googlebot: none\nnoarchive"}},"new":1}"#;
        let challenge = Some(Challenge::Cloudflare);
        let head = Head {
            status: 403,
            is_attachment: true,
            is_pdf: false,
            challenge,
            refresh: Some("1".into()),
            opts_out: true,
        };
        match Event::parse("Network.responseReceived", params).unwrap() {
            Some(Event::ResponseReceived { request, loader, kind, head: read, length, details }) => {
                assert_eq!((&*request, &*loader, kind, length), ("1", "L", Kind::Document, None));
                assert_eq!((read, details.headers.len()), (head, 4));
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn body_length_is_read_unless_the_body_is_compressed() {
        let length = |headers: &str| {
            let params = format!(
                r#"{{"requestId":"1","loaderId":"L","type":"Fetch","response":{{"status":200,"headers":{headers}}}}}"#
            );
            match Event::parse("Network.responseReceived", &params).unwrap() {
                Some(Event::ResponseReceived { length, .. }) => length,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(length(r#"{"Content-Length":"12"}"#), Some(12));
        assert_eq!(length(r#"{"content-length":"12","Content-Encoding":"br"}"#), None);
        assert_eq!(length("{}"), None);
    }

    #[test]
    fn worker_script_is_distinguished_from_page_scripts() {
        for (initiator, kind) in [("parser", Kind::Script), ("script", Kind::Script), ("other", Kind::Worker)] {
            let params = format!(
                r#"{{"requestId":"1","loaderId":"","type":"Script","request":{{"url":"x:"}},"initiator":{{"type":"{initiator}"}}}}"#
            );
            let event = Event::parse("Network.requestWillBeSent", &params).unwrap();
            assert!(matches!(event, Some(Event::RequestStarted { kind: read, .. }) if read == kind), "{initiator}");
        }
    }

    #[test]
    fn paused_response_says_whether_the_site_opts_out() {
        let opts_out = |rest: &str| {
            let params = format!(
                r#"{{"requestId":"interception-job-1.0","networkId":"N","frameId":"F","resourceType":"Document",
                    "request":{{"url":"http://a/","method":"GET","headers":{{"Referer":"http://b/"}}}}{rest}}}"#
            );
            match Event::parse("Fetch.requestPaused", &params).unwrap() {
                Some(Event::RequestPaused(paused)) => {
                    assert_eq!((paused.referrer(), paused.is_document()), (Some("http://b/"), true));
                    paused.opts_out
                }
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(opts_out(""), None);
        assert_eq!(
            opts_out(r#","responseStatusCode":200,"responseHeaders":[{"name":"A","value":"noarchive"}]"#),
            Some(false)
        );
        let twice =
            r#","responseHeaders":[{"name":"x-robots-tag","value":"all"},{"name":"X-Robots-Tag","value":"noarchive"}]"#;
        assert_eq!(opts_out(twice), Some(true));
    }

    #[test]
    fn unknown_resource_type_is_parsed_as_other() {
        let params = r#"{"requestId":"1","loaderId":"","type":"FutureType","request":{"url":"x:"}}"#;
        let Some(Event::RequestStarted { kind, frame, .. }) =
            Event::parse("Network.requestWillBeSent", params).unwrap()
        else {
            panic!("not a request");
        };
        assert_eq!((kind, frame), (Kind::Other, None));
        assert_eq!(Event::parse("Page.somethingNew", "{}").unwrap(), None);
        let attached = r#"{"sessionId":"s","targetInfo":{"type":"future","url":"x:"}}"#;
        assert_eq!(Event::parse("Target.attachedToTarget", attached).unwrap(), None);
        assert!(Event::parse("Page.frameNavigated", "{}").is_err());
    }
}
