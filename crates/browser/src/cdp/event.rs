//! The events a render looks at, each with just the members it needs.

use serde::Deserialize;

/// What happened on a page.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Event {
    /// A frame shows another document.
    FrameNavigated { frame: String, is_main: bool, loader: String, url: String, unreachable_url: Option<String> },
    /// The address changed without another document.
    NavigatedWithinDocument { frame: String, url: String },
    /// The main document was parsed.
    DomContentLoaded,
    /// The main document and what it names was loaded.
    Loaded,
    /// A request started, or followed a redirect.
    RequestStarted { request: String, loader: String, frame: Option<String>, kind: Kind, url: String },
    /// The head of an answer arrived.
    ResponseReceived { loader: String, kind: Kind, head: Head },
    /// Some of an answer's body arrived: so many bytes once they are unpacked.
    DataReceived { request: String, bytes: u64 },
    /// A request ended well.
    RequestFinished { request: String },
    /// A request ended badly.
    RequestFailed { request: String, error: String },
    /// A dialog holds the page up.
    DialogOpened { is_before_unload: bool },
    /// The browser began a download, which it is told to deny.
    DownloadBegan,
    /// The page started a worker.
    WorkerStarted,
    /// The page's process died.
    Crashed,
    /// The page is gone.
    Detached,
}

/// What is asked of an answer's head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    /// The HTTP status.
    pub(crate) status: u16,
    /// `Content-Disposition: attachment`?
    pub(crate) is_attachment: bool,
    /// Does a protection service say that this is its challenge?
    pub(crate) is_challenge: bool,
    /// Does a header send the page on later?
    pub(crate) refreshes: bool,
}

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A document of any frame.
    Document,
    /// Data a script asked for and may draw.
    Data,
    /// Scripts.
    Script,
    /// Images, styles, fonts.
    Asset,
    /// What no picture shows: pings, sockets, icons, media.
    Other,
}

impl Kind {
    fn parse(word: &str) -> Self {
        match word {
            "Document" => Self::Document,
            "Fetch" | "XHR" => Self::Data,
            "Script" => Self::Script,
            "Image" | "Stylesheet" | "Font" => Self::Asset,
            _ => Self::Other,
        }
    }
}

impl Event {
    /// The event in a message, when it is one we look at.
    ///
    /// # Errors
    /// When the members are not what the protocol says.
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
                    kind: sent.r#type.as_deref().map_or(Kind::Other, Kind::parse),
                    url: sent.request.url,
                }
            }
            "Network.responseReceived" => {
                let ResponseReceived { loader_id, r#type, response } = serde_json::from_str(params)?;
                let kind = Kind::parse(&r#type);
                // Only documents are judged by their head.
                let head = if kind == Kind::Document { response.head() } else { Head::default() };
                Self::ResponseReceived { loader: loader_id, kind, head }
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
                let Attached { target_info } = serde_json::from_str(params)?;
                match target_info.r#type.as_str() {
                    "worker" => Self::WorkerStarted,
                    _ => return Ok(None),
                }
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
}

#[derive(Deserialize)]
struct Request {
    url: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResponseReceived {
    loader_id: String,
    r#type: String,
    response: Response,
}

#[derive(Deserialize)]
struct Response {
    status: u16,
    #[serde(default)]
    headers: serde_json::Map<String, serde_json::Value>,
}

impl Response {
    fn head(&self) -> Head {
        let header = |name: &str| {
            self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).and_then(|(_, value)| value.as_str())
        };
        Head {
            status: self.status,
            is_attachment: header("content-disposition")
                .is_some_and(|value| value.trim_start().starts_with("attachment")),
            is_challenge: header("cf-mitigated") == Some("challenge"),
            refreshes: header("refresh").is_some(),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Attached {
    target_info: Target,
}

#[derive(Deserialize)]
struct Target {
    r#type: String,
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
    use super::*;

    #[test]
    fn a_document_is_read_with_what_its_head_says() {
        let params = r#"{"requestId":"1","loaderId":"L","timestamp":1.5,"type":"Document","response":{"url":"http://a/",
            "status":403,"statusText":"","headers":{"CF-Mitigated":"challenge","Refresh":"1","content-disposition":"attachment; x"}},"new":1}"#;
        let head = Head { status: 403, is_attachment: true, is_challenge: true, refreshes: true };
        assert_eq!(
            Event::parse("Network.responseReceived", params).unwrap(),
            Some(Event::ResponseReceived { loader: "L".into(), kind: Kind::Document, head })
        );
    }

    #[test]
    fn words_of_a_newer_browser_are_read_as_other() {
        let params = r#"{"requestId":"1","loaderId":"","type":"Telepathy","request":{"url":"x:"}}"#;
        let Some(Event::RequestStarted { kind, frame, .. }) =
            Event::parse("Network.requestWillBeSent", params).unwrap()
        else {
            panic!("not a request");
        };
        assert_eq!((kind, frame), (Kind::Other, None));
        assert_eq!(Event::parse("Page.somethingNew", "{}").unwrap(), None);
        assert_eq!(Event::parse("Target.attachedToTarget", r#"{"targetInfo":{"type":"thought"}}"#).unwrap(), None);
        assert!(Event::parse("Page.frameNavigated", "{}").is_err());
    }
}
