//! Middleware of all REST routes: rate limit by address, CORS headers and recovery from panics.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use grabd_proto::credential;
use http::header::WWW_AUTHENTICATE;
use http::{HeaderValue, StatusCode};

use super::error::{ApiError, INVALID_TOKEN, MISSING_TOKEN};
use super::{Edge, address, call, cors, headers, limits, links};

/// Counts requests without a recognised team by address: before the handler if they have no credential, after it if the
/// core did not accept the credential. Links have theirs in the query.
pub(super) async fn handle(State(edge): State<Arc<Edge>>, request: Request, next: Next) -> Response {
    let request_id = call::request_id(request.headers()).clone();
    let client = address::client_address(&request, &edge.trusted_proxies);
    let open = cors::PUBLIC_PATHS.contains(&request.uri().path()).then(|| request.method().clone());

    let has_credential = credential::bearer(request.headers()).is_some() || request.uri().path() == links::PATH;
    let mut response = if has_credential {
        let response = catch_panic(next, request, &request_id).await;
        match response.headers().contains_key(headers::RATE_LIMIT) {
            true => response,
            false => count_response(&edge, client, response),
        }
    } else {
        match edge.addresses.take(client) {
            Ok(window) => {
                let mut response = catch_panic(next, request, &request_id).await;
                window.write(response.headers_mut());
                response
            }
            Err(window) => limits::rate_limit_error(&window).into_response(),
        }
    };

    edge.challenges.complete(&mut response);
    if let Some(method) = open {
        cors::insert_headers(&method, response.headers_mut());
    }
    response
}

/// Values of `WWW-Authenticate`, which name the protected resource metadata (RFC 9728 section 5.1).
pub(super) struct Challenges {
    missing: HeaderValue,
    invalid: HeaderValue,
}

impl Challenges {
    pub(super) fn new(origin: &str) -> Self {
        let challenge = |error: &str| {
            let text = format!("Bearer {error}resource_metadata=\"{origin}/.well-known/oauth-protected-resource\"");
            HeaderValue::from_str(&text).expect("an origin is visible ASCII")
        };
        Self { missing: challenge(""), invalid: challenge("error=\"invalid_token\", ") }
    }

    /// Adds the metadata to the challenge of a response.
    fn complete(&self, response: &mut Response) {
        if response.status() != StatusCode::UNAUTHORIZED {
            return;
        }
        let challenge = match response.headers().get(WWW_AUTHENTICATE) {
            Some(challenge) if challenge == MISSING_TOKEN => &self.missing,
            Some(challenge) if challenge == INVALID_TOKEN => &self.invalid,
            Some(_) | None => return,
        };
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge.clone());
    }
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
        Err(window) if !response.status().is_server_error() => limits::rate_limit_error(&window).into_response(),
        Ok(window) | Err(window) => {
            window.write(response.headers_mut());
            response
        }
    }
}
