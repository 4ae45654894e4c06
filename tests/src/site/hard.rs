//! Pages that are hard to capture: the files below `tests/site/hard`, and generated responses. The README beside the
//! pages lists both.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future;
use std::io::Cursor;
use std::path::{Component, Path as FilePath, PathBuf};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, CONTENT_TYPE, LOCATION, REFRESH};
use axum::response::sse::{Event, Sse};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use futures::stream::{self, StreamExt};
use image::{ImageFormat, Rgb, RgbImage};
use tokio::time::{interval, sleep};

use crate::hard::colour;

/// The origin of the same site under another address.
pub(super) type Other = String;

const HTML: &str = "text/html; charset=utf-8";
const FONT: &[u8] = include_bytes!("../../site/fonts/blocks.woff2");
/// Minimum pause between heartbeats.
const LEAST_PAUSE: Duration = Duration::from_millis(10);

type Arguments = Query<HashMap<String, String>>;

pub(super) fn routes(other: Other) -> Router {
    let made = Router::new()
        .route("/make/svg/{colour}", get(svg))
        .route("/make/png/{colour}", get(png))
        .route("/make/text", get(async |query| body("text/plain; charset=utf-8", query).await))
        .route("/make/html", get(async |query| body(HTML, query).await))
        .route("/make/css", get(async |query| body("text/css", query).await))
        .route("/make/js", get(async |query| body("text/javascript", query).await))
        .route("/make/json", get(async |query| body("application/json", query).await))
        .route("/make/status/{code}", get(status))
        .route("/make/redirect", get(redirect))
        .route("/make/refresh", get(refresh))
        .route("/make/font", get(font))
        .route("/make/never", get(future::pending::<StatusCode>))
        .route("/make/slow-body", get(slow_body))
        .route("/make/endless", get(endless))
        .route("/make/events", get(events))
        .route("/make/socket", get(socket));
    Router::new()
        .route("/hard/{*path}", get(file))
        .with_state((directory(), other.clone()))
        .merge(Router::new().route("/built/{*path}", get(file)).with_state((built(), other)))
        .merge(made)
}

/// The directory of the pages.
pub fn directory() -> PathBuf {
    FilePath::new(env!("CARGO_MANIFEST_DIR")).join("site/hard")
}

/// The directory of the sites that third-party tools have built.
pub fn built() -> PathBuf {
    FilePath::new(env!("CARGO_MANIFEST_DIR")).join("../target/pictures/sites")
}

/// A file. It is read for each request, so that changes are visible at once.
async fn file(State((root, other)): State<(PathBuf, Other)>, Path(path): Path<String>) -> Response {
    let relative = FilePath::new(&path);
    if !relative.components().all(|part| matches!(part, Component::Normal(_))) {
        return StatusCode::NOT_FOUND.into_response();
    }
    let mut path_on_disk = root.join(relative);
    if path_on_disk.is_dir() {
        if !path.ends_with('/') {
            let last = path.rsplit('/').next().unwrap_or_default();
            return (StatusCode::MOVED_PERMANENTLY, [(LOCATION, format!("{last}/"))]).into_response();
        }
        path_on_disk = path_on_disk.join("index.html");
    }
    let Ok(content) = tokio::fs::read(&path_on_disk).await else { return StatusCode::NOT_FOUND.into_response() };
    let media = media_type(&path_on_disk);
    let content = match String::from_utf8(content) {
        Ok(text) => text.replace("{other}", &other).into_bytes(),
        Err(binary) => binary.into_bytes(),
    };
    ([(CONTENT_TYPE, media), (ACCESS_CONTROL_ALLOW_ORIGIN, "*")], content).into_response()
}

/// The media type of a file by the end of its name, as static hosting has it.
pub fn media_type(path: &FilePath) -> &'static str {
    match path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_ascii_lowercase().as_str() {
        "html" | "htm" => HTML,
        "css" => "text/css",
        "js" | "mjs" | "cjs" => "text/javascript",
        "json" | "map" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        "gif" => "image/gif",
        "avif" => "image/avif",
        "bmp" => "image/bmp",
        "ico" => "image/x-icon",
        "woff" => "font/woff",
        "woff2" => "font/woff2",
        "ttf" => "font/ttf",
        "otf" => "font/otf",
        "eot" => "application/vnd.ms-fontobject",
        "mp4" | "m4v" => "video/mp4",
        "webm" => "video/webm",
        "ogv" => "video/ogg",
        "mp3" => "audio/mpeg",
        "ogg" | "oga" => "audio/ogg",
        "wav" => "audio/wav",
        "vtt" => "text/vtt",
        "pdf" => "application/pdf",
        "xhtml" => "application/xhtml+xml",
        "xml" => "application/xml",
        "webmanifest" => "application/manifest+json",
        "geojson" => "application/geo+json",
        "csv" => "text/csv; charset=utf-8",
        "wasm" => "application/wasm",
        "txt" | "md" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

fn number(query: &Arguments, name: &str) -> Option<u64> {
    query.get(name).and_then(|value| value.parse().ok())
}

fn text(query: &Arguments, name: &str) -> String {
    query.get(name).cloned().unwrap_or_default()
}

fn pause(query: &Arguments) -> Option<Duration> {
    number(query, "every").map(|ms| Duration::from_millis(ms).max(LEAST_PAUSE))
}

async fn wait(query: &Arguments) {
    // The delay is the purpose of the response. It ends with the site.
    sleep(Duration::from_millis(number(query, "after").unwrap_or(0))).await;
}

async fn body(media: &'static str, query: Arguments) -> Response {
    wait(&query).await;
    ([(CONTENT_TYPE, media), (ACCESS_CONTROL_ALLOW_ORIGIN, "*")], text(&query, "body")).into_response()
}

fn size(query: &Arguments) -> [u32; 2] {
    ["w", "h"].map(|side| number(query, side).and_then(|value| u32::try_from(value).ok()).unwrap_or(100).clamp(1, 4000))
}

async fn svg(Path(name): Path<String>, query: Arguments) -> Response {
    wait(&query).await;
    let [width, height] = size(&query);
    let image = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"><rect width="100%" height="100%" fill="{name}"/></svg>"#
    );
    ([(CONTENT_TYPE, "image/svg+xml"), (ACCESS_CONTROL_ALLOW_ORIGIN, "*")], image).into_response()
}

async fn png(Path(name): Path<String>, query: Arguments) -> Response {
    wait(&query).await;
    let Some(colour) = colour(&name) else { return StatusCode::NOT_FOUND.into_response() };
    let [width, height] = size(&query);
    let mut image = Cursor::new(Vec::new());
    match RgbImage::from_pixel(width, height, Rgb(colour)).write_to(&mut image, ImageFormat::Png) {
        Ok(()) => {
            ([(CONTENT_TYPE, "image/png"), (ACCESS_CONTROL_ALLOW_ORIGIN, "*")], image.into_inner()).into_response()
        }
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn status(Path(code): Path<u16>, query: Arguments) -> Response {
    wait(&query).await;
    let status = StatusCode::from_u16(code).unwrap_or(StatusCode::BAD_REQUEST);
    (status, Html(text(&query, "body"))).into_response()
}

async fn redirect(query: Arguments) -> Response {
    wait(&query).await;
    (StatusCode::FOUND, [(LOCATION, text(&query, "to"))]).into_response()
}

async fn refresh(query: Arguments) -> Response {
    wait(&query).await;
    let value = format!("{};url={}", number(&query, "seconds").unwrap_or(0), text(&query, "to"));
    ([(CONTENT_TYPE, HTML.to_owned()), (REFRESH, value)], text(&query, "body")).into_response()
}

async fn font(query: Arguments) -> Response {
    wait(&query).await;
    ([(CONTENT_TYPE, "font/woff2"), (ACCESS_CONTROL_ALLOW_ORIGIN, "*")], FONT).into_response()
}

async fn slow_body(query: Arguments) -> Response {
    let chunks = usize::try_from(number(&query, "chunks").unwrap_or(1)).unwrap_or(1);
    streamed(&query, chunks).await
}

async fn endless(query: Arguments) -> Response {
    streamed(&query, usize::MAX).await
}

async fn streamed(query: &Arguments, chunks: usize) -> Response {
    wait(query).await;
    let pause = pause(query).unwrap_or(LEAST_PAUSE);
    let chunk = Bytes::from(text(query, "body"));
    let chunks = stream::iter(0..chunks).then(move |at| {
        let chunk = chunk.clone();
        async move {
            if at > 0 {
                sleep(pause).await;
            }
            Ok::<_, Infallible>(chunk)
        }
    });
    let headers = [(CONTENT_TYPE, "text/plain; charset=utf-8"), (ACCESS_CONTROL_ALLOW_ORIGIN, "*")];
    (headers, Body::from_stream(chunks)).into_response()
}

async fn events(query: Arguments) -> Response {
    let (first, pause) = (text(&query, "body"), pause(&query));
    let after = Duration::from_millis(number(&query, "after").unwrap_or(0));
    // The head is sent at once, as event stream servers do. Only the first event is delayed.
    let first = stream::once(async move {
        sleep(after).await;
        Event::default().data(first)
    });
    let rest = match pause {
        Some(pause) => stream::unfold(interval(pause), |mut beat| async move {
            beat.tick().await;
            Some((Event::default().event("heartbeat").data("."), beat))
        })
        .boxed(),
        None => stream::pending().boxed(),
    };
    let stream = Sse::new(first.chain(rest).map(Ok::<_, Infallible>));
    ([(ACCESS_CONTROL_ALLOW_ORIGIN, "*")], stream).into_response()
}

async fn socket(query: Arguments, upgrade: WebSocketUpgrade) -> Response {
    upgrade.on_upgrade(async move |socket| {
        // Every socket ends because its page is closed.
        let _ = converse(socket, query).await;
    })
}

async fn converse(mut socket: WebSocket, query: Arguments) -> Result<(), axum::Error> {
    if let Some(greeting) = query.get("greet") {
        socket.send(Message::text(greeting.clone())).await?;
    }
    let after = Duration::from_millis(number(&query, "after").unwrap_or(0));
    let mut first = std::pin::pin!(sleep(after));
    let mut sent = !query.contains_key("body");
    let mut beat = interval(pause(&query).unwrap_or(Duration::from_secs(3600)));
    beat.reset();
    loop {
        tokio::select! {
            () = &mut first, if !sent => {
                sent = true;
                socket.send(Message::text(text(&query, "body"))).await?;
            }
            _ = beat.tick() => socket.send(Message::text("heartbeat")).await?,
            message = socket.recv() => match message {
                Some(Ok(Message::Text(text))) => socket.send(Message::text(format!("echo:{text}"))).await?,
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error),
                None => return Ok(()),
            },
        }
    }
}
