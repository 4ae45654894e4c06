//! The routes of `/v1`, one file each, and shared code.
//!
//! A request passes `common_headers` (request id, trace), `request_layer` (rate limit by address), the file of its
//! route and `call` (gRPC call). The response is built by `wire` (JSON) or `error` (error envelope). `openapi`
//! generates the OpenAPI document, and `docs` renders it as HTML.

pub(crate) mod address;
mod batch;
pub(crate) mod body;
pub(crate) mod call;
mod common_headers;
mod cors;
pub(crate) mod create;
mod delete;
mod docs;
pub(crate) mod error;
mod etag;
mod events;
mod fetch;
pub(crate) mod fields;
pub(crate) mod headers;
mod idempotency_key;
pub(crate) mod json;
pub(crate) mod limits;
mod links;
mod list;
mod openapi;
pub(crate) mod options;
mod prefer;
mod pricing;
#[cfg(any(test, feature = "fuzzing"))]
pub mod properties;
mod query;
pub(crate) mod request_layer;
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
pub use address::{client_address, rate_limit_address};
use body::LargeBodies;
pub use common_headers::common_headers;
pub use cors::allow_any_origin;
use docs::Reference;
use error::ApiError;
pub use error::error_response;
use limits::AddressLimiter;
use request_layer::Challenges;

/// Settings of the REST API.
#[derive(Clone, Debug)]
pub struct Options {
    /// Origin at which callers reach `/v1`, such as `https://grabd.example`. Pagination links begin with it.
    pub public_url: String,
    /// Origin of the page on which people authorize apps. It is named in the OpenAPI document.
    pub auth_url: String,
    /// Requests per minute and address without a recognised team. At least 1.
    pub requests_per_minute: u32,
    /// Asynchronous grabs a team may have open. Only reported here; the core enforces the limit.
    pub async_queue_limit: u32,
    /// Networks of proxies whose `X-Forwarded-For` is trusted.
    pub trusted_proxies: Vec<IpNet>,
}

/// State shared by all handlers.
struct Edge {
    transport: Transport,
    origin: String,
    async_queue_limit: u32,
    trusted_proxies: Vec<IpNet>,
    addresses: AddressLimiter,
    large_bodies: LargeBodies,
    reference: Reference,
    challenges: Challenges,
}

/// The REST API, and the JSON 404 response for unknown paths. The peer address is taken from the request extension
/// `ConnectInfo<SocketAddr>`.
pub fn router(transport: Transport, options: Options) -> Router {
    let Options { public_url, auth_url, requests_per_minute, async_queue_limit, trusted_proxies } = options;
    let origin = public_url.trim_end_matches('/').to_owned();
    let edge = Arc::new(Edge {
        transport,
        reference: Reference::render(&origin, &auth_url),
        challenges: Challenges::new(&origin),
        origin,
        async_queue_limit,
        trusted_proxies,
        addresses: AddressLimiter::new(requests_per_minute),
        large_bodies: LargeBodies::default(),
    });
    let mut router = Router::new();
    for (path, allowed, methods) in routes() {
        router = router.route(path, allow_methods(allowed, methods));
    }
    let router = router
        .fallback(async || ApiError::new(ErrorCode::NotFound, "Nothing is served at this path."))
        .layer(middleware::from_fn_with_state(Arc::clone(&edge), request_layer::handle))
        .with_state(Arc::clone(&edge));
    common_headers(router, &edge.origin)
}

/// A path, the value of its `Allow` header, and its handlers.
type Route = (&'static str, &'static str, MethodRouter<Arc<Edge>>);

/// All routes. Those below `/v1` must also be described in `openapi`; a test compares the two.
fn routes() -> Vec<Route> {
    vec![
        ("/v1/grabs", "GET, HEAD, POST, OPTIONS", get(list::list).post(create::create)),
        (batch::PATH, "POST, OPTIONS", post(batch::create)),
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
        (links::PATH, "GET, HEAD, OPTIONS", get(links::open)),
        ("/v1/usage", "GET, HEAD, OPTIONS", get(usage::usage)),
        (pricing::PATH, "GET, HEAD, OPTIONS", get(pricing::pricing)),
        (docs::OPENAPI_PATH, "GET, HEAD, OPTIONS", get(docs::document)),
        (docs::ROOT_OPENAPI_PATH, "GET, HEAD, OPTIONS", get(docs::document)),
        (docs::PATH, "GET, HEAD, OPTIONS", get(docs::page)),
    ]
}

/// Rejects other methods with 405 and handles OPTIONS. Both responses have `allowed` as their `Allow` header.
pub fn allow_methods<S>(allowed: &'static str, methods: MethodRouter<S>) -> MethodRouter<S>
where
    S: Clone + Send + Sync + 'static,
{
    methods.fallback(async move |method: Method| -> Response {
        let mut response = match method {
            Method::OPTIONS => StatusCode::NO_CONTENT.into_response(),
            _ => {
                let message = format!("This path supports only these methods: {allowed}.");
                let mut response = ApiError::new(ErrorCode::BadRequest, message).into_response();
                *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
                response
            }
        };
        response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
        response
    })
}

/// The `{id}` of the path. One that is not UTF-8 is forwarded as an empty id, so that the core checks the credential
/// and the limits first.
fn id(path: Result<Path<String>, PathRejection>) -> String {
    path.map(|Path(id)| id).unwrap_or_default()
}
