//! The routes of `/v1`, one file each, and what they share.
//!
//! A request goes through `manners` (request id, trace), `frame` (the limit of its address), its route's file, `call` (the
//! way to the core) and comes back through `wire` (JSON) or `error` (the envelope). `openapi` describes all of it, and
//! `docs` shows that description to people.

pub(crate) mod address;
pub(crate) mod body;
pub(crate) mod call;
mod cors;
pub(crate) mod create;
mod delete;
mod docs;
pub(crate) mod error;
mod etag;
mod events;
mod fetch;
pub(crate) mod fields;
pub(crate) mod frame;
pub(crate) mod headers;
mod idempotency_key;
pub(crate) mod json;
pub(crate) mod limits;
mod list;
mod manners;
mod openapi;
mod prefer;
mod pricing;
#[cfg(any(test, feature = "fuzzing"))]
pub mod properties;
mod query;
mod usage;
mod watch;
mod webhooks;
pub(crate) mod wire;

use std::sync::Arc;

use axum::Router;
use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use grabd_proto::v1::ErrorCode;
use http::header::ALLOW;
use http::{HeaderValue, Method, StatusCode};
use ipnet::IpNet;

use crate::transport::Transport;
pub use address::{of_client as client_address, subscriber};
pub use cors::open_to_browsers;
use docs::Reference;
use error::Failure;
pub use error::refuse;
use limits::Addresses;
pub use manners::manners;

/// What the routes need to know of the deployment.
#[derive(Clone, Debug)]
pub struct Options {
    /// Origin under which callers reach `/v1`, such as `https://grabd.example`. Links to further pages begin with it.
    pub public_url: String,
    /// Requests per minute and address, over all requests in which the core recognised no team. At least 1.
    pub requests_per_minute: u32,
    /// Asynchronous grabs a team may have open. Only told here; the core holds the limit.
    pub async_queue_limit: u32,
    /// Networks of proxies whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<IpNet>,
}

/// What every request shares.
struct Edge {
    transport: Transport,
    origin: String,
    async_queue_limit: u32,
    trusted_proxies: Vec<IpNet>,
    addresses: Addresses,
    reference: Reference,
}

/// Everything under `/v1`, and the JSON answer to every path that nobody serves. The peer's address is taken from the
/// request extension `ConnectInfo<SocketAddr>`.
pub fn router(transport: Transport, options: Options) -> Router {
    let Options { public_url, requests_per_minute, async_queue_limit, trusted_proxies } = options;
    let origin = public_url.trim_end_matches('/').to_owned();
    let edge = Arc::new(Edge {
        transport,
        reference: Reference::of(&origin),
        origin,
        async_queue_limit,
        trusted_proxies,
        addresses: Addresses::new(requests_per_minute),
    });
    let mut router = Router::new();
    for (path, allowed, methods) in routes() {
        router = router.route(path, only(allowed, methods));
    }
    let router = router
        .fallback(async || Failure::new(ErrorCode::NotFound, "Nothing is served at this path."))
        .layer(middleware::from_fn_with_state(Arc::clone(&edge), frame::frame))
        .with_state(Arc::clone(&edge));
    manners(router, &edge.origin)
}

/// A path, the methods it answers as `Allow` names them, and who answers.
type Route = (&'static str, &'static str, MethodRouter<Arc<Edge>>);

/// Every path. One below `/v1` is also described in `openapi`; a test compares the two.
fn routes() -> Vec<Route> {
    vec![
        ("/v1/grabs", "GET, HEAD, POST, OPTIONS", get(list::list).post(create::create)),
        ("/v1/grabs/{id}", "GET, HEAD, DELETE, OPTIONS", get(fetch::fetch).delete(delete::delete)),
        ("/v1/grabs/{id}/events", "GET, HEAD, OPTIONS", get(events::events)),
        ("/v1/webhooks", "GET, HEAD, POST, OPTIONS", get(webhooks::list).post(webhooks::create)),
        (
            "/v1/webhooks/{id}",
            "GET, HEAD, PATCH, DELETE, OPTIONS",
            get(webhooks::fetch).patch(webhooks::update).delete(webhooks::delete),
        ),
        ("/v1/webhooks/{id}/rotate_secret", "POST, OPTIONS", post(webhooks::rotate_secret)),
        ("/v1/webhooks/{id}/test", "POST, OPTIONS", post(webhooks::test)),
        ("/v1/webhooks/{id}/deliveries", "GET, HEAD, OPTIONS", get(webhooks::deliveries)),
        ("/v1/webhooks/{id}/deliveries/{delivery_id}/redeliver", "POST, OPTIONS", post(webhooks::redeliver)),
        ("/v1/usage", "GET, HEAD, OPTIONS", get(usage::usage)),
        (pricing::PATH, "GET, HEAD, OPTIONS", get(pricing::pricing)),
        (docs::DOCUMENT, "GET, HEAD, OPTIONS", get(docs::document)),
        (docs::PATH, "GET, HEAD, OPTIONS", get(docs::page)),
    ]
}

/// Answers every other method with `allowed`: as a refusal, or as the answer to OPTIONS.
pub fn only<S>(allowed: &'static str, methods: MethodRouter<S>) -> MethodRouter<S>
where
    S: Clone + Send + Sync + 'static,
{
    methods.fallback(async move |method: Method| -> Response {
        let mut response = match method {
            Method::OPTIONS => StatusCode::NO_CONTENT.into_response(),
            _ => {
                let message = format!("This path answers {allowed} only.");
                let mut response = Failure::new(ErrorCode::BadRequest, message).into_response();
                *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
                response
            }
        };
        response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
        response
    })
}

/// The `{id}` of the path. One that is no text at all goes on as no id, so that the core's order of judgement holds.
fn id(path: Result<Path<String>, PathRejection>) -> String {
    path.map(|Path(id)| id).unwrap_or_default()
}
