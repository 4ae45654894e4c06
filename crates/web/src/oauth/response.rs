//! Responses of the OAuth endpoints: errors (RFC 6749 section 5.2), caching and cross-origin access.

use std::sync::Arc;

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::MethodRouter;
use grabd_engine::oauth::EndpointError;
use grabd_http::allow_methods;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ALLOW, CACHE_CONTROL, CONTENT_TYPE, PRAGMA, RETRY_AFTER,
    WWW_AUTHENTICATE,
};
use http::{HeaderValue, Method, StatusCode};
use serde_json::{Value, json};

use crate::form::FormError;
use crate::rate_limits::RateLimited;
use crate::state::Web;

/// An OAuth error response.
#[derive(Debug)]
pub(super) struct OauthError {
    status: StatusCode,
    error: &'static str,
    description: String,
    retry_after_s: Option<u64>,
}

impl OauthError {
    /// An invalid request.
    pub(super) fn bad_request(error: &'static str, description: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, error, description: description.into(), retry_after_s: None }
    }

    /// An error of the engine, with its status.
    pub(super) fn of(status: u16, error: &'static str, description: String) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self { status, error, description, retry_after_s: None }
    }
}

impl IntoResponse for OauthError {
    fn into_response(self) -> Response {
        let Self { status, error, description, retry_after_s } = self;
        let mut response = uncached(status, &json!({ "error": error, "error_description": description }));
        let headers = response.headers_mut();
        if let Some(seconds) = retry_after_s {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"grabd\""));
        }
        response
    }
}

impl From<RateLimited> for OauthError {
    fn from(RateLimited { retry_after_s }: RateLimited) -> Self {
        Self {
            status: StatusCode::TOO_MANY_REQUESTS,
            error: "temporarily_unavailable",
            description: format!("Too many requests from this address. Retry in {retry_after_s} s."),
            retry_after_s: Some(retry_after_s),
        }
    }
}

impl From<FormError> for OauthError {
    fn from(error: FormError) -> Self {
        Self::bad_request("invalid_request", error.to_string())
    }
}

impl From<EndpointError> for OauthError {
    fn from(EndpointError { status, error, description }: EndpointError) -> Self {
        Self::of(status, error, description)
    }
}

/// A JSON response that must not be cached.
pub(super) fn uncached(status: StatusCode, body: &Value) -> Response {
    let mut response = json_response(status, body, "no-store");
    response.headers_mut().insert(PRAGMA, HeaderValue::from_static("no-cache"));
    response
}

/// A JSON response with a `Cache-Control` header.
pub(super) fn json_response(status: StatusCode, body: &Value, caching: &'static str) -> Response {
    (status, [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, caching)], body.to_string()).into_response()
}

/// Adds a fallback for all other methods, with `allowed` as the `Allow` header: 204 for OPTIONS, otherwise 405.
pub(super) fn only(allowed: &'static str, methods: MethodRouter<Arc<Web>>) -> MethodRouter<Arc<Web>> {
    allow_methods(allowed, methods, |allowed| {
        OauthError::bad_request("invalid_request", format!("This path answers {allowed} only.")).into_response()
    })
}

/// CORS middleware: allows pages of any origin to call the endpoints, without cookies. The credentials are in the
/// request itself.
pub(super) async fn allow_cross_origin(request: Request, next: Next) -> Response {
    let is_preflight = request.method() == Method::OPTIONS;
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    let any = HeaderValue::from_static("*");
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, any.clone());
    if is_preflight {
        let methods = headers.get(ALLOW).cloned().unwrap_or_else(|| HeaderValue::from_static("OPTIONS"));
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
        // The wildcard does not include Authorization (Fetch standard).
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("*, Authorization"));
        headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
    } else {
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, any);
    }
    response
}
