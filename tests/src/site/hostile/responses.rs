//! Responses of the servers of hostile pages.

use std::convert::Infallible;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ws::{Message, WebSocketUpgrade};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, PROXY_AUTHENTICATE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use flate2::{Compress, Compression, FlushCompress};
use futures::{Stream, StreamExt, stream};

use crate::site::behaviour::{GREEN, css};

const HTML: &str = "text/html; charset=utf-8";

/// Pause between two bytes of a trickling response.
const TRICKLE: Duration = Duration::from_millis(200);

const MEGABYTE: usize = 1 << 20;

/// Decompressed size of the one-megabyte gzip bomb, in megabytes.
const BOMB: usize = 1024;

pub(super) fn routes() -> Router {
    // Built once per site, on first request.
    let bomb: Arc<OnceLock<Bytes>> = Arc::default();
    Router::new()
        .route("/sends/proxy-auth", get(proxy_auth))
        .route("/sends/trickle", get(|| async { trickle(HTML, start()) }))
        .route("/sends/trickle-image", get(|| async { trickle("image/png", "\u{89}PNG".into()) }))
        .route("/sends/endless", get(|| async { body(HTML, spaces().boxed()) }))
        .route("/sends/gigabyte", get(gigabyte))
        .route(
            "/sends/bomb",
            get(async move || {
                ([(CONTENT_TYPE, HTML), (CONTENT_ENCODING, "gzip")], bomb.get_or_init(gzip_bomb).clone())
            }),
        )
        .route("/sends/socket", get(socket))
        .route("/sends/socket-flood", get(socket_flood))
        .route("/hostile/service-worker.js", get(|| async { ([(CONTENT_TYPE, "text/javascript")], service_worker()) }))
}

/// A proxy authentication challenge, sent by a site.
async fn proxy_auth() -> impl IntoResponse {
    (StatusCode::PROXY_AUTHENTICATION_REQUIRED, [(PROXY_AUTHENTICATE, "Basic realm=\"proxy\"")], "no")
}

/// The beginning of a page that is green from its first bytes on.
fn start() -> String {
    format!("<!doctype html><title>Fixture</title><style>html{{background:{}}}</style><body>", css(GREEN))
}

/// These bytes, then one space per pause without end.
fn trickle(media: &'static str, start: String) -> Response {
    let spaces_with_pauses = stream::unfold((), |()| async {
        tokio::time::sleep(TRICKLE).await;
        Some((Bytes::from_static(b" "), ()))
    });
    body(media, stream::once(async { Bytes::from(start) }).chain(spaces_with_pauses).boxed())
}

/// An endless stream of spaces.
fn spaces() -> impl Stream<Item = Bytes> + Send {
    stream::repeat(Bytes::from(vec![b' '; MEGABYTE]))
}

async fn gigabyte() -> impl IntoResponse {
    let body = spaces().take(1024).map(Ok::<_, Infallible>);
    ([(CONTENT_TYPE, HTML), (CONTENT_LENGTH, "1073741824")], Body::from_stream(body))
}

fn body(media: &'static str, bytes: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    ([(CONTENT_TYPE, media)], Body::from_stream(bytes.map(Ok::<_, Infallible>))).into_response()
}

/// A page of spaces that is a thousand times larger than what is sent: one megabyte, compressed so that it can be
/// repeated. The missing checksum does not matter, because no client reads to the end.
fn gzip_bomb() -> Bytes {
    const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    let mut one = Vec::with_capacity(MEGABYTE);
    let mut packer = Compress::new(Compression::best(), false);
    packer.compress_vec(&[b' '; MEGABYTE], &mut one, FlushCompress::Full).expect("compression into memory succeeds");
    [&HEAD[..], &one.repeat(BOMB)].concat().into()
}

/// Sends a message, and another one for each message received.
async fn socket(upgrade: WebSocketUpgrade) -> Response {
    upgrade.on_upgrade(|mut socket| async move {
        let mut sent = socket.send(Message::text("hello")).await.is_ok();
        while sent && let Some(Ok(_)) = socket.recv().await {
            tokio::time::sleep(TRICKLE).await;
            sent = socket.send(Message::text("hello")).await.is_ok();
        }
    })
}

/// Sends messages of one megabyte as fast as they are accepted.
async fn socket_flood(upgrade: WebSocketUpgrade) -> Response {
    upgrade.on_upgrade(|mut socket| async move {
        let text = "x".repeat(MEGABYTE);
        while socket.send(Message::text(text.clone())).await.is_ok() {}
    })
}

/// A service worker that answers every request with a green page and never stops.
fn service_worker() -> String {
    format!(
        "oninstall = () => skipWaiting(); onactivate = (event) => event.waitUntil(clients.claim());\
         onfetch = (event) => event.respondWith(new Response(`{}`, {{ headers: {{ 'content-type': 'text/html' }} }}));\
         setInterval(() => {{}}, 1)",
        start()
    )
}
