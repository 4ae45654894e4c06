//! Health for load balancers and supervisors, outside `/v1`.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CACHE_CONTROL;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use grabd_browser::Chromium;
use grabd_edge::only;
use grabd_engine::Core;

const METHODS: &str = "GET, HEAD, OPTIONS";

#[derive(Clone)]
struct Parts {
    core: Core,
    browser: Chromium,
}

/// `/healthz`: this process answers. `/readyz`: so do the database, a renderer and a browser.
pub(super) fn router(core: Core, browser: Chromium) -> Router {
    Router::new()
        .route("/healthz", only(METHODS, get(|| async { answer(StatusCode::OK, "ok\n") })))
        .route("/readyz", only(METHODS, get(ready)))
        .with_state(Parts { core, browser })
}

async fn ready(State(Parts { core, browser }): State<Parts>) -> Response {
    let missing: Vec<&str> = [
        ("database", core.is_ready().await),
        ("renderer", core.has_renderer()),
        ("browser", browser.health().browsers() > 0),
    ]
    .into_iter()
    .filter_map(|(part, there)| (!there).then_some(part))
    .collect();
    match missing.is_empty() {
        true => answer(StatusCode::OK, "ready\n"),
        false => answer(StatusCode::SERVICE_UNAVAILABLE, &format!("not ready: {}\n", missing.join(", "))),
    }
}

fn answer(status: StatusCode, text: &str) -> Response {
    (status, [(CACHE_CONTROL, "no-store")], text.to_owned()).into_response()
}
