//! The routes of `/v1`, one file each, and what they share.
//!
//! A request goes through `frame` (request id, address limit, headers of every answer), its route's file, `call` (the way
//! to the core) and comes back through `wire` (JSON) or `error` (the envelope).

mod address;
mod body;
mod call;
mod create;
mod delete;
mod error;
mod etag;
mod events;
mod fetch;
mod frame;
mod headers;
mod json;
mod limits;
mod list;
mod prefer;
mod pricing;
mod query;
mod usage;
mod watch;
mod wire;

use std::sync::Arc;

use axum::Router;
use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use grabd_proto::v1::ErrorCode;
use http::header::ALLOW;
use http::{HeaderValue, Method, StatusCode};
use ipnet::IpNet;

use crate::transport::Transport;
use error::Failure;
use limits::Addresses;

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
}

/// Everything under `/v1`, and the JSON answer to every path that nobody serves. The peer's address is taken from the
/// request extension `ConnectInfo<SocketAddr>`.
pub fn router(transport: Transport, options: Options) -> Router {
    let Options { public_url, requests_per_minute, async_queue_limit, trusted_proxies } = options;
    let edge = Arc::new(Edge {
        transport,
        origin: public_url.trim_end_matches('/').to_owned(),
        async_queue_limit,
        trusted_proxies,
        addresses: Addresses::new(requests_per_minute),
    });
    Router::new()
        .route("/v1/grabs", only("GET, HEAD, POST, OPTIONS", get(list::list).post(create::create)))
        .route("/v1/grabs/{id}", only("GET, HEAD, DELETE, OPTIONS", get(fetch::fetch).delete(delete::delete)))
        .route("/v1/grabs/{id}/events", only("GET, HEAD, OPTIONS", get(events::events)))
        .route("/v1/usage", only("GET, HEAD, OPTIONS", get(usage::usage)))
        .route(pricing::PATH, only("GET, HEAD, OPTIONS", get(pricing::pricing)))
        .fallback(async || Failure::new(ErrorCode::NotFound, "Nothing is served at this path."))
        .layer(middleware::from_fn_with_state(Arc::clone(&edge), frame::frame))
        .with_state(edge)
}

/// Answers every other method with `allowed`: as a refusal, or as the answer to OPTIONS.
fn only(allowed: &'static str, methods: MethodRouter<Arc<Edge>>) -> MethodRouter<Arc<Edge>> {
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
