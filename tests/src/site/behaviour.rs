//! Paths with special behaviour, and pages that show by one colour what happened.

use std::collections::{HashMap, HashSet};
use std::future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, Query};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, COOKIE, HOST, LOCATION, SET_COOKIE, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse};
use axum::routing::{MethodRouter, get};
use tokio::sync::watch;

use crate::pixels::{Colour, Patch};

/// The colour of a page after success.
pub const GREEN: Colour = [0x1d, 0x7a, 0x3e];
/// The colour of a page after a failure.
pub const RED: Colour = [0xb8, 0x32, 0x1f];
/// A neutral colour.
pub const BLUE: Colour = [0x1f, 0x4f, 0xbf];

/// The position of `#target` on `/element`.
pub const ELEMENT: Patch = Patch { x: 120, y: 900, width: 300, height: 200, colour: BLUE };
/// Height of `/sticky` and of `/inner-scroll`'s content in pixels.
pub const LONG_PX: u32 = 3000;

pub(super) fn routes() -> Router {
    Router::new()
        .merge(failures())
        .merge(state())
        .merge(scripts())
        .merge(layouts())
        .route("/headers", get(headers))
        .route("/pages.txt", get(pages))
        .route("/embed", get(embed))
}

/// A sitemap: a list of three pages.
async fn pages(headers: HeaderMap) -> String {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    ["", "?page=2", "?page=3"].map(|query| format!("http://{host}/tiny{query}\n")).concat()
}

fn failures() -> Router {
    Router::new()
        .route("/status/{code}", get(status))
        .route("/refuses-once/{name}", refuses_once())
        .route(
            "/basic-auth",
            get(|| async { (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, "Basic realm=\"site\"")]) }),
        )
        .route("/slow/{ms}", get(slow))
        .route("/held/{*path}", held())
        .route("/hang", get(future::pending::<StatusCode>))
        .route("/redirect", get(redirect))
        .route("/loop", get(|| async { (StatusCode::FOUND, [(LOCATION, "/loop")]) }))
        .route("/robots-tag/{value}", get(robots_tag))
        .route("/nocontent", get(|| async { StatusCode::NO_CONTENT }))
        .route("/download", get(download))
}

/// A page with any status. Use `/nocontent` for a status that forbids a body.
async fn status(Path(code): Path<u16>) -> impl IntoResponse {
    let status = StatusCode::from_u16(code).unwrap_or(StatusCode::BAD_REQUEST);
    (status, page(&format!("<h1>{status}</h1>")))
}

async fn slow(Path(ms): Path<u64>) -> Html<String> {
    tokio::time::sleep(Duration::from_millis(ms)).await;
    page(&format!("<h1>After {ms} ms</h1>"))
}

/// Redirects to `path`, but only after a POST request to the same path. Tests use it to observe a waiting capture.
fn held() -> MethodRouter {
    let released: watch::Sender<HashSet<String>> = watch::Sender::default();
    let waiters = released.clone();
    get(async move |Path(path): Path<String>| {
        // The sender lives as long as the site.
        let _ = waiters.subscribe().wait_for(|released| released.contains(&path)).await;
        (StatusCode::FOUND, [(LOCATION, format!("/{path}"))])
    })
    .post(async move |Path(path): Path<String>| {
        released.send_modify(|released| {
            released.insert(path);
        });
        StatusCode::NO_CONTENT
    })
}

/// Responds 403 to the first visit under each name, and with a green page from then on.
fn refuses_once() -> MethodRouter {
    let visited: Arc<Mutex<HashSet<String>>> = Arc::default();
    get(async move |Path(name): Path<String>| {
        let is_first = visited.lock().unwrap_or_else(PoisonError::into_inner).insert(name);
        match is_first {
            true => (StatusCode::FORBIDDEN, page("<h1>Not yet</h1>")).into_response(),
            false => coloured(GREEN, "").into_response(),
        }
    })
}

/// Redirects to `to`, by default to `/tiny`.
async fn redirect(Query(query): Query<HashMap<String, String>>) -> impl IntoResponse {
    let to = query.get("to").map_or("/tiny", String::as_str);
    (StatusCode::FOUND, [(LOCATION, to.to_owned())])
}

/// A page with the header `X-Robots-Tag`.
async fn robots_tag(Path(value): Path<String>) -> impl IntoResponse {
    ([("x-robots-tag", value)], page("<h1>Ours</h1>"))
}

async fn download() -> impl IntoResponse {
    let headers =
        [(CONTENT_TYPE, "application/octet-stream"), (CONTENT_DISPOSITION, "attachment; filename=\"file.bin\"")];
    (headers, vec![0_u8; 4096])
}

/// State that one visit stores and another must not find.
fn state() -> Router {
    Router::new().route("/cookie-set", get(cookie_set)).route("/cookie-read", get(cookie_read))
}

async fn cookie_set() -> impl IntoResponse {
    let body = coloured(GREEN, "localStorage.setItem('visited', '1');");
    ([(SET_COOKIE, "visited=1; Path=/; Max-Age=3600")], body)
}

/// Green on the first visit of a browser, red if cookie or storage of an earlier visit exist.
async fn cookie_read(headers: HeaderMap) -> Html<String> {
    let visited =
        headers.get(COOKIE).and_then(|value| value.to_str().ok()).is_some_and(|value| value.contains("visited"));
    let colour = if visited { RED } else { GREEN };
    coloured(colour, &format!("if (localStorage.getItem('visited')) {{ {} }}", set_colour(RED)))
}

fn scripts() -> Router {
    Router::new()
        .route("/alert", get(|| async { coloured(RED, &format!("alert('hello'); {}", set_colour(GREEN))) }))
        .route("/forever", get(|| async { coloured(RED, "for (;;) {}") }))
        .route("/meta-refresh", get(|| async { page("<meta http-equiv=\"refresh\" content=\"0\">") }))
        .route("/late/{ms}", get(late))
        .route("/colour/{red}/{green}/{blue}", get(colour))
}

/// A page of any colour, so that an image identifies its page. `after` delays the response by that many milliseconds.
async fn colour(Path(colour): Path<(u8, u8, u8)>, Query(query): Query<HashMap<String, u64>>) -> Html<String> {
    let (red, green, blue) = colour;
    if let Some(ms) = query.get("after") {
        tokio::time::sleep(Duration::from_millis(*ms)).await;
    }
    coloured([red, green, blue], "")
}

/// Red, and green this long after the load event.
async fn late(Path(ms): Path<u64>) -> Html<String> {
    coloured(RED, &format!("addEventListener('load', () => setTimeout(() => {{ {} }}, {ms}));", set_colour(GREEN)))
}

/// Pages whose image depends on the part that is captured.
fn layouts() -> Router {
    let [green, red, blue] = [GREEN, RED, BLUE].map(css);
    let Patch { x, y, width, height, .. } = ELEMENT;
    let pages = [
        (
            "/element",
            format!(
                "<div style='height:2000px'></div><div id='target' style='position:absolute;left:{x}px;top:{y}px;\
                 width:{width}px;height:{height}px;background:{blue}'></div>"
            ),
        ),
        (
            "/vh",
            format!(
                "<div style='height:100vh;background:{green}'></div><div style='height:2000px;background:{blue}'></div>"
            ),
        ),
        (
            "/sticky",
            format!(
                "<div style='position:fixed;top:0;left:0;right:0;height:60px;background:{red}'></div>\
                 <div style='height:{LONG_PX}px;background:{blue}'></div>"
            ),
        ),
        (
            "/inner-scroll",
            format!(
                "<style>html,body{{height:100%}}</style><div style='height:100%;overflow:auto'>\
                 <div style='height:{}px;background:{green}'></div><div style='height:200px;background:{blue}'></div></div>",
                LONG_PX - 200
            ),
        ),
    ];
    pages.into_iter().fold(Router::new(), |router, (path, body)| router.route(path, get(|| async move { page(&body) })))
}

/// The request's headers as text.
async fn headers(headers: HeaderMap) -> String {
    headers.iter().map(|(name, value)| format!("{name}: {}\n", String::from_utf8_lossy(value.as_bytes()))).collect()
}

/// A page with one image from the URL `src`.
async fn embed(Query(query): Query<HashMap<String, String>>) -> Html<String> {
    let src = query.get("src").map_or("", String::as_str).replace('&', "&amp;").replace('"', "&quot;");
    page(&format!("<h1>Embeds</h1><img alt=\"\" width=\"200\" height=\"200\" src=\"{src}\">"))
}

fn page(body: &str) -> Html<String> {
    Html(format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Fixture</title>\
         <link rel=\"icon\" href=\"data:,\"><style>html,body{{margin:0}}</style></head><body>{body}</body></html>"
    ))
}

/// A page of one colour with a script.
fn coloured(colour: Colour, script: &str) -> Html<String> {
    page(&format!("<style>html{{background:{}}}</style><script>{script}</script>", css(colour)))
}

/// A script that changes the colour of such a page.
fn set_colour(colour: Colour) -> String {
    format!("document.documentElement.style.background = '{}';", css(colour))
}

pub(super) fn css([red, green, blue]: Colour) -> String {
    format!("rgb({red},{green},{blue})")
}
