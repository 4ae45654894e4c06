//! Serves the hostile pages on the allowed address.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, LOCATION};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::canary::Canaries;
use super::{Channel, Payload};
use crate::harness::ALLOWED;

const HTML: &str = "text/html; charset=utf-8";

/// The start of every hostile page. The data URL avoids a request for an icon.
const HEAD: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Hostile</title>\
    <link rel=\"icon\" href=\"data:,\"><body><p>hostile</p>";

const HELPERS: &str = "<script>
    const serve = (kind, text) => `${location.origin}/as/${kind}?${encodeURIComponent(text)}`;
    const frame = (html) => {
        const frame = document.createElement('iframe');
        frame.srcdoc = html;
        document.body.append(frame);
        return new Promise((loaded) => { frame.onload = () => loaded(frame) });
    };
</script>";

/// A running site with its canaries. Both stop when dropped.
pub struct HostileSite {
    /// The canaries that the pages try to reach.
    pub canaries: Arc<Canaries>,
    origin: String,
    _stop: DropGuard,
}

#[derive(Clone)]
struct Pages {
    channels: Arc<BTreeMap<&'static str, &'static Channel>>,
    canaries: Arc<Canaries>,
    /// The base URL of the files that pages request: a `file:` URL, or one of this site.
    files: Arc<str>,
}

impl HostileSite {
    /// Serves the pages of these channels. `files` replaces `@files@`.
    ///
    /// # Errors
    /// If a port cannot be bound.
    pub async fn start(channels: &'static [Channel], files: &str) -> io::Result<Self> {
        let canaries = Arc::new(Canaries::start(channels).await?);
        let listener = TcpListener::bind((ALLOWED, 0)).await?;
        let origin = format!("http://{}", listener.local_addr()?);
        let by_name = channels.iter().map(|channel| (channel.name, channel)).collect();
        let files = files.replace("@site@", &origin).into();
        let pages = Pages { channels: Arc::new(by_name), canaries: canaries.clone(), files };
        let router = Router::new()
            .route("/channels/{names}", get(page))
            .route("/to/{status}", get(redirect))
            .route("/as/{kind}", get(text))
            .route("/files/{file}", get(file))
            .with_state(pages);
        let stop = CancellationToken::new();
        let serving = async move { axum::serve(listener, router).await };
        TaskTracker::new().spawn(stop.clone().run_until_cancelled_owned(serving));
        Ok(Self { canaries, origin, _stop: stop.drop_guard() })
    }

    /// The URL of one channel's page, or of a page with several parts.
    pub fn url(&self, channels: &[&str]) -> String {
        format!("{}/channels/{}", self.origin, channels.join("+"))
    }

    /// Scheme, host and port.
    pub fn origin(&self) -> &str {
        &self.origin
    }
}

async fn page(State(pages): State<Pages>, Path(names): Path<String>) -> Response {
    let (mut status, mut header, mut html) = (200, String::new(), HEAD.to_owned() + HELPERS);
    for name in names.split('+') {
        let Some(channel) = pages.channels.get(name) else { return StatusCode::NOT_FOUND.into_response() };
        let fill = |text: &str| pages.fill(channel, text);
        match channel.payload {
            Payload::Markup(markup) => html += &fill(markup),
            Payload::Script(script) => {
                let address = pages.canaries.address(name);
                let (host, port) = (address, address.port());
                write!(
                    html,
                    "<script>(async (url, host, port) => {{ {} }})('http://{host}/', '{host}', {port})\
                     .catch((error) => console.error('{name}', error))</script>",
                    fill(script)
                )
                .expect("writing to a String cannot fail");
            }
            Payload::Standalone(line, body) => (header, html) = (fill(line), format!("{HEAD}{}", fill(body))),
            Payload::Document(code, line, body) => {
                (status, header, html) = (code, fill(line), format!("{HEAD}{}", fill(body)));
            }
        }
    }
    let mut response = (StatusCode::from_u16(status).unwrap_or_default(), as_kind(HTML), html).into_response();
    if let Some((name, value)) = header.split_once(": ")
        && let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_bytes(value.as_bytes()))
    {
        response.headers_mut().insert(name, value);
    }
    response
}

impl Pages {
    fn fill(&self, channel: &Channel, text: &str) -> String {
        let address = self.canaries.address(channel.name);
        text.replace("@url@", &format!("http://{address}/"))
            .replace("@host@", &address.to_string())
            .replace("@port@", &address.port().to_string())
            .replace("@files@", &self.files)
            .replace("@name@", channel.name)
    }
}

/// Redirects to the URL in the query.
async fn redirect(Path(status): Path<u16>, RawQuery(to): RawQuery) -> impl IntoResponse {
    (StatusCode::from_u16(status).unwrap_or_default(), [(LOCATION, to.unwrap_or_default())])
}

/// The query's text as a script, stylesheet or document.
async fn text(Path(kind): Path<String>, RawQuery(text): RawQuery) -> impl IntoResponse {
    (as_kind(media(&kind)), decode(&text.unwrap_or_default()))
}

/// The content of a file, for the unguarded control of the pages that request files.
async fn file(State(pages): State<Pages>, Path(file): Path<String>) -> Response {
    let Some((name, kind)) = file.split_once('.') else { return StatusCode::NOT_FOUND.into_response() };
    let address = pages.canaries.address(name);
    (as_kind(media(kind)), file_content(kind, &format!("http://{address}/"))).into_response()
}

/// The content of a file of this kind that requests `url` when it is loaded.
pub fn file_content(kind: &str, url: &str) -> String {
    match kind {
        "js" => format!("new Image().src = '{url}';"),
        "css" => format!("@import '{url}';"),
        _ => format!("<!doctype html><title>file</title><img src='{url}'>"),
    }
}

fn media(kind: &str) -> &'static str {
    match kind {
        "js" => "text/javascript",
        "css" => "text/css",
        "svg" => "image/svg+xml",
        "xml" => "text/xml",
        "json" => "application/json",
        _ => HTML,
    }
}

fn as_kind(media: &'static str) -> [(HeaderName, &'static str); 3] {
    [(CONTENT_TYPE, media), (CACHE_CONTROL, "no-store"), (HeaderName::from_static("service-worker-allowed"), "/")]
}

fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16)).unwrap_or_default();
        bytes.push(match byte {
            b'%' => u8::try_from(digit(rest.next()) * 16 + digit(rest.next())).unwrap_or_default(),
            byte => byte,
        });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
