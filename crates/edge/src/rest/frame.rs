//! What holds for every request to the API, whichever route it takes: the limit of its address, and no panic gets out.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use grabd_proto::credential;
use http::HeaderValue;

use super::error::Failure;
use super::{Edge, address, call, cors, headers, limits};

/// Requests in which the core recognises no team are counted per address: before they run when they carry no credential,
/// afterwards when they carry one that the core did not accept.
pub(super) async fn frame(State(edge): State<Arc<Edge>>, request: Request, next: Next) -> Response {
    let request_id = call::request_id(request.headers()).clone();
    let client = address::of_client(&request, &edge.trusted_proxies);
    let open = cors::OPEN.contains(&request.uri().path()).then(|| request.method().clone());

    let mut response = if credential::bearer(request.headers()).is_some() {
        let response = run(next, request, &request_id).await;
        match response.headers().contains_key(headers::RATE_LIMIT) {
            true => response,
            false => count(&edge, client, response),
        }
    } else {
        match edge.addresses.take(client) {
            Ok(window) => {
                let mut response = run(next, request, &request_id).await;
                window.write(response.headers_mut());
                response
            }
            Err(window) => limits::refusal(&window).into_response(),
        }
    };

    if let Some(method) = open {
        cors::open(&method, response.headers_mut());
    }
    response
}

/// Runs the route. A panic is a fault of ours like any other: the caller gets an envelope, not a broken connection.
pub(crate) async fn run(next: Next, request: Request, request_id: &HeaderValue) -> Response {
    match AssertUnwindSafe(next.run(request)).catch_unwind().await {
        Ok(response) => response,
        Err(_) => Failure::internal("a handler panicked", request_id).into_response(),
    }
}

/// Counts a request after the fact. A failure of ours is told even when the address has nothing left.
fn count(edge: &Edge, client: std::net::IpAddr, mut response: Response) -> Response {
    match edge.addresses.take(client) {
        Err(window) if !response.status().is_server_error() => limits::refusal(&window).into_response(),
        Ok(window) | Err(window) => {
            window.write(response.headers_mut());
            response
        }
    }
}
