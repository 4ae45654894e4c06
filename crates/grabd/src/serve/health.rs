//! Health checks for load balancers and supervisors, outside of `/v1`.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CACHE_CONTROL;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use grabd_browser::Chromium;
use grabd_edge::allow_methods;
use grabd_engine::Core;

const METHODS: &str = "GET, HEAD, OPTIONS";

#[derive(Clone)]
struct HealthState {
    core: Core,
    browser: Option<Chromium>,
}

/// `/healthz`: the process responds. `/readyz`: the database, a renderer, a browser and disk space are available.
pub(super) fn router(core: Core, browser: Option<Chromium>) -> Router {
    Router::new()
        .route("/healthz", allow_methods(METHODS, get(|| async { respond(StatusCode::OK, "ok\n") })))
        .route("/readyz", allow_methods(METHODS, get(ready)))
        .with_state(HealthState { core, browser })
}

async fn ready(State(HealthState { core, browser }): State<HealthState>) -> Response {
    let mut missing: Vec<String> = [
        ("database", core.is_ready().await),
        ("renderer", core.has_renderer()),
        ("browser", browser.is_some_and(|browser| browser.health().browsers() > 0)),
    ]
    .into_iter()
    .filter(|(_, is_ready)| !is_ready)
    .map(|(part, _)| part.to_owned())
    .collect();
    missing.extend(core.short_of_disk());
    match missing.is_empty() {
        true => respond(StatusCode::OK, "ready\n"),
        false => respond(StatusCode::SERVICE_UNAVAILABLE, &format!("not ready: {}\n", missing.join(", "))),
    }
}

fn respond(status: StatusCode, text: &str) -> Response {
    (status, [(CACHE_CONTROL, "no-store")], text.to_owned()).into_response()
}
