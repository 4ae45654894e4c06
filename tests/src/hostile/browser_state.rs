//! A site that stores state wherever a page can, and looks for it on the next visit.

use std::collections::HashSet;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::{ConnectInfo, Path, State};
use axum::http::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, COOKIE, SET_COOKIE, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::harness::ALLOWED;

/// Time limit for a report. Only reached by failing tests.
const WAIT_LIMIT: Duration = Duration::from_secs(30);

/// All kinds of state that a later page in the same context finds while the first page is still open.
pub const STATE_KINDS: [&str; 16] = [
    "auth",
    "broadcast",
    "cache-storage",
    "cookie",
    "cookie-http-only",
    "file-system",
    "history",
    "http-cache",
    "indexed-db",
    "local-storage",
    "lock",
    "service-worker",
    "session-storage",
    "shared-worker",
    "socket",
    "window-name",
];

/// Stores all kinds of state, reports to the site, and goes to the page that `then` names.
const REMEMBER: &str = "
    document.cookie = 'seen=1; max-age=3600';
    localStorage.seen = sessionStorage.seen = window.name = '1';
    history.pushState(0, '', '#seen');
    await (await caches.open('seen')).put('/seen', new Response('1'));
    await new Promise((done) => {
        const open = indexedDB.open('seen');
        open.onupgradeneeded = () => open.result.createObjectStore('seen');
        open.onsuccess = open.onerror = done;
    });
    await (await navigator.storage.getDirectory()).getFileHandle('seen', { create: true });
    await navigator.serviceWorker.register('/worker.js');
    await navigator.serviceWorker.ready;
    await (await fetch('/cached')).text();
    await new Promise((done) => {
        const request = new XMLHttpRequest();
        request.open('GET', '/private', true, 'user', 'word');
        request.onloadend = done;
        request.send();
    });
    new BroadcastChannel('seen').onmessage = (event) => event.data === 'anyone?' && event.target.postMessage('yes');
    navigator.locks.request('seen', () => new Promise(() => {}));
    window.shared = new SharedWorker('/shared.js');
    await new Promise((done) => { shared.port.onmessage = done });
    await fetch('/reports/remembered', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '[]' });
    const then = new URLSearchParams(location.search).get('then');
    if (then) location.href = then;";

/// Looks for all kinds of state and reports what was found.
const RECALL: &str = "
    const found = [...GIVEN];
    const look = async (name, is) => { try { if (await is()) found.push(name) } catch {} };
    const soon = (start) => Promise.race([new Promise(start), new Promise((late) => setTimeout(late, 700))]);
    await look('cookie', () => document.cookie.includes('seen'));
    await look('local-storage', () => localStorage.seen);
    await look('session-storage', () => sessionStorage.seen);
    await look('window-name', () => window.name);
    await look('history', () => history.length > 2);
    await look('cache-storage', () => caches.match('/seen'));
    await look('indexed-db', async () => (await indexedDB.databases()).length);
    await look('file-system', async () => {
        for await (const name of (await navigator.storage.getDirectory()).keys()) if (name === 'seen') return true;
    });
    await look('service-worker', async () => (await navigator.serviceWorker.getRegistrations()).length);
    await look('http-cache', async () => Number(await (await fetch('/cached', { cache: 'force-cache' })).text()) <= BEFORE);
    await look('auth', async () => (await fetch('/private')).ok);
    await look('lock', async () => (await navigator.locks.query()).held.length);
    await look('broadcast', () => soon((heard) => {
        const channel = new BroadcastChannel('seen');
        channel.onmessage = heard;
        channel.postMessage('anyone?');
    }));
    await look('shared-worker', async () => (await soon((told) => {
        window.shared = new SharedWorker('/shared.js');
        shared.port.onmessage = told;
    })).data > 1);
    await look('permission', async () => {
        for (const name of ['geolocation', 'notifications', 'clipboard-read', 'camera', 'microphone'])
            if ((await navigator.permissions.query({ name })).state === 'granted') return true;
    });
    await fetch('/reports/recalled', {
        method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(found) });";

/// Starts two downloads: by a link and by a frame.
const DOWNLOAD: &str = "
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob(['hostile']));
    link.download = 'hostile-download';
    document.body.append(link);
    link.click();
    const frame = document.createElement('iframe');
    frame.src = '/attachment';
    document.body.append(frame);";

/// The running site. It stops when dropped.
pub struct StateSite {
    /// Scheme, host and port.
    pub origin: String,
    reports: watch::Sender<Vec<Report>>,
    _stop: DropGuard,
}

/// A page's report: `remembered`, or `recalled` with what was found.
#[derive(Clone, Debug)]
struct Report {
    kind: String,
    found: Vec<String>,
}

#[derive(Clone)]
struct Shared {
    reports: watch::Sender<Vec<Report>>,
    server_state: Arc<Mutex<ServerState>>,
}

#[derive(Default)]
struct ServerState {
    /// Peer addresses of connections that were used to store state.
    sockets: HashSet<SocketAddr>,
    /// Responses sent for the cacheable resource.
    cached: u32,
}

impl StateSite {
    /// Starts the site.
    ///
    /// # Errors
    /// If a port cannot be bound.
    pub async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((ALLOWED, 0)).await?;
        let origin = format!("http://{}", listener.local_addr()?);
        let reports = watch::Sender::default();
        let shared = Shared { reports: reports.clone(), server_state: Arc::default() };
        let router = Router::new()
            .route("/remember", get(remember))
            .route("/recall", get(recall))
            .route("/download", get(|| async { page(DOWNLOAD) }))
            .route("/attachment", get(attachment))
            .route("/cached", get(cached))
            .route("/private", get(private))
            .route("/worker.js", get(|| async { script("") }))
            .route("/shared.js", get(|| async { script("let n = 0; onconnect = (e) => e.ports[0].postMessage(++n)") }))
            .route("/reports/{kind}", post(report))
            .with_state(shared);
        let stop = CancellationToken::new();
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        let serving = async move { axum::serve(listener, service).await };
        TaskTracker::new().spawn(stop.clone().run_until_cancelled_owned(serving));
        Ok(Self { origin, reports, _stop: stop.drop_guard() })
    }

    /// The URL of a page: `remember`, `recall` or `download`.
    pub fn url(&self, page: &str) -> String {
        format!("{}/{page}", self.origin)
    }

    /// Waits for the report with this index (from 0) of a kind. Returns what the page found, sorted.
    ///
    /// # Panics
    /// If the report does not arrive in time.
    pub async fn report(&self, kind: &str, number: usize) -> Vec<String> {
        let of_kind = |reports: &Vec<Report>| reports.iter().filter(|r| r.kind == kind).nth(number).cloned();
        let mut reports = self.reports.subscribe();
        let came = timeout(WAIT_LIMIT, reports.wait_for(|reports| of_kind(reports).is_some())).await;
        let came = came.ok().and_then(Result::ok).and_then(|reports| of_kind(&reports));
        let mut found = came.unwrap_or_else(|| panic!("no {kind} number {number}")).found;
        found.sort();
        found
    }
}

async fn remember(State(shared): State<Shared>, ConnectInfo(peer): ConnectInfo<SocketAddr>) -> Response {
    shared.server_state().sockets.insert(peer);
    ([(SET_COOKIE, "hidden=1; HttpOnly; Max-Age=3600")], page(REMEMBER)).into_response()
}

async fn recall(
    State(shared): State<Shared>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
) -> Html<String> {
    let server_state = shared.server_state();
    let cookies = headers.get(COOKIE).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let mut given = Vec::new();
    if server_state.sockets.contains(&peer) {
        given.push("'socket'");
    }
    if cookies.is_some_and(|cookies| cookies.contains("hidden")) {
        given.push("'cookie-http-only'");
    }
    page(&RECALL.replace("...GIVEN", &given.join(", ")).replace("BEFORE", &server_state.cached.to_string()))
}

/// A new number per request, cacheable for an hour.
async fn cached(State(shared): State<Shared>, ConnectInfo(peer): ConnectInfo<SocketAddr>) -> impl IntoResponse {
    let mut server_state = shared.server_state();
    server_state.sockets.insert(peer);
    server_state.cached += 1;
    ([(CACHE_CONTROL, "max-age=3600"), (CONTENT_TYPE, "text/plain")], server_state.cached.to_string())
}

async fn private(headers: HeaderMap) -> Response {
    match headers.contains_key(AUTHORIZATION) {
        true => "welcome".into_response(),
        false => (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, "Basic realm=\"hostile\"")]).into_response(),
    }
}

async fn attachment() -> impl IntoResponse {
    ([("content-disposition", "attachment; filename=\"hostile-download\"")], "hostile")
}

async fn report(State(shared): State<Shared>, Path(kind): Path<String>, Json(found): Json<Vec<String>>) {
    shared.reports.send_modify(|reports| reports.push(Report { kind, found }));
}

impl Shared {
    fn server_state(&self) -> std::sync::MutexGuard<'_, ServerState> {
        self.server_state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn page(script: &str) -> Html<String> {
    Html(format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Memory</title>\
         <link rel=\"icon\" href=\"data:,\"><body><p>memory<script>(async () => {{ {script} }})()\
         .catch((error) => {{ document.body.append(error) }})</script>"
    ))
}

fn script(text: &'static str) -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/javascript"), (CACHE_CONTROL, "no-store")], text)
}
