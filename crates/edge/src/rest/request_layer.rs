//! Middleware of all REST routes: rate limit by address, CORS headers and recovery from panics.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use grabd_http::{client_address, insert_cors_headers};
use grabd_proto::{called_as, credential};
use http::HeaderValue;

use super::error::ApiError;
use super::state::Edge;
use super::{call, cors, paths, rate_limit_headers};

/// Counts requests without a recognised team by address: before the handler if they have no credential, after it if the
/// core did not accept the credential. Links have theirs in the query.
pub(super) async fn handle(State(edge): State<Arc<Edge>>, mut request: Request, next: Next) -> Response {
    let request_id = call::request_id(request.headers()).clone();
    let client = client_address(&request, &edge.trusted_proxies);
    let open = cors::PUBLIC_PATHS.contains(&request.uri().path()).then(|| request.method().clone());

    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    called_as::set(request.headers_mut(), method.as_str(), &path);
    let has_credential = credential::bearer(request.headers()).is_some() || request.uri().path() == paths::LINKS;
    let mut response = if has_credential {
        let response = catch_panic(next, request, &request_id).await;
        match response.headers().contains_key(rate_limit_headers::RATE_LIMIT) {
            true => response,
            false => count_response(&edge, client, response),
        }
    } else {
        match edge.addresses.take(client) {
            Ok(window) => {
                let mut response = catch_panic(next, request, &request_id).await;
                rate_limit_headers::write(&window, response.headers_mut());
                response
            }
            Err(window) => ApiError::rate_limit_exceeded(&window).into_response(),
        }
    };

    edge.challenges.complete(&mut response);
    if let Some(method) = open {
        insert_cors_headers(&method, response.headers_mut());
    }
    response
}

/// Runs the handler and turns a panic into an internal error, so that the connection is not cut.
pub(crate) async fn catch_panic(next: Next, request: Request, request_id: &HeaderValue) -> Response {
    match AssertUnwindSafe(next.run(request)).catch_unwind().await {
        Ok(response) => response,
        Err(_) => ApiError::internal("a handler panicked", request_id).into_response(),
    }
}

/// Counts a request after its handler has run. An internal error is returned even if the limit is exceeded.
fn count_response(edge: &Edge, client: std::net::IpAddr, mut response: Response) -> Response {
    match edge.addresses.take(client) {
        Err(window) if !response.status().is_server_error() => ApiError::rate_limit_exceeded(&window).into_response(),
        Ok(window) | Err(window) => {
            rate_limit_headers::write(&window, response.headers_mut());
            response
        }
    }
}
