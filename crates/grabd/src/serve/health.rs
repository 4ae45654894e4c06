//! Health checks for load balancers and supervisors, outside of `/v1`.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CACHE_CONTROL;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use grabd_browser::Chromium;
use grabd_edge::{allow_methods, error_response};
use grabd_engine::Core;
use grabd_proto::v1::ErrorCode;
use grabd_rpc::renderer_pool::AttachedCores;

use crate::config::ProcessRole;

const METHODS: &str = "GET, HEAD, OPTIONS";

#[derive(Clone)]
struct HealthState {
    core: Core,
    role: ProcessRole,
    browser: Option<Chromium>,
}

/// `/healthz`: the process responds. `/readyz`: what the role needs is available: the database, and a renderer, or a core with
/// one. A lack of disk space is only mentioned: customers could cause it, and everything but creates works.
pub(super) fn router(core: Core, role: ProcessRole, browser: Option<Chromium>) -> Router {
    Router::new()
        .route("/healthz", allow_methods(METHODS, get(healthy)))
        .route("/readyz", allow_methods(METHODS, get(ready)))
        .with_state(HealthState { core, role, browser })
}

/// The same for the role `renderer`, which needs a browser and a core.
pub(super) fn renderer_router(cores: AttachedCores, browser: Chromium) -> Router {
    let ready = move || {
        let parts = [("core", cores.count() > 0), ("browser", browser.health().browsers() > 0)];
        async move { report(&missing(&parts), None) }
    };
    Router::new()
        .route("/healthz", allow_methods(METHODS, get(healthy)))
        .route("/readyz", allow_methods(METHODS, get(ready)))
        .fallback(no_api)
}

/// The response at all other paths of a process that serves only these two.
pub(super) async fn no_api() -> Response {
    error_response(ErrorCode::NotFound, "This process serves /healthz and /readyz only; the API is at the edges.")
}

async fn healthy() -> Response {
    respond(StatusCode::OK, "ok\n")
}

async fn ready(State(HealthState { core, role, browser }): State<HealthState>) -> Response {
    let mut parts = vec![("database", core.is_ready().await)];
    if core.role().is_some() {
        parts.push(("cluster", core.is_member()));
    }
    match role {
        ProcessRole::Edge => parts.push(("core with a renderer", core.cluster_has_renderers())),
        ProcessRole::All | ProcessRole::Core | ProcessRole::Renderer => parts.push(("renderer", core.has_renderer())),
    }
    if role == ProcessRole::All {
        parts.push(("browser", browser.is_some_and(|browser| browser.health().browsers() > 0)));
    }
    report(&missing(&parts), core.short_of_disk())
}

fn missing(parts: &[(&str, bool)]) -> Vec<String> {
    parts.iter().filter(|(_, is_ready)| !is_ready).map(|(part, _)| (*part).to_owned()).collect()
}

fn report(missing: &[String], shortage: Option<String>) -> Response {
    let shortage = shortage.map_or(String::new(), |shortage| format!("short of: {shortage}\n"));
    match missing.is_empty() {
        true => respond(StatusCode::OK, &format!("ready\n{shortage}")),
        false => respond(StatusCode::SERVICE_UNAVAILABLE, &format!("not ready: {}\n{shortage}", missing.join(", "))),
    }
}

fn respond(status: StatusCode, text: &str) -> Response {
    (status, [(CACHE_CONTROL, "no-store")], text.to_owned()).into_response()
}
