//! The methods of a path.

use axum::response::{IntoResponse, Response};
use axum::routing::MethodRouter;
use http::header::ALLOW;
use http::{HeaderValue, Method, StatusCode};

/// Answers all other methods: OPTIONS with 204, the rest with the response that `refuse` makes, as a 405. Both have
/// `allowed` as their `Allow` header (RFC 9110 section 15.5.6).
pub fn allow_methods<S>(
    allowed: &'static str,
    methods: MethodRouter<S>,
    refuse: fn(&'static str) -> Response,
) -> MethodRouter<S>
where
    S: Clone + Send + Sync + 'static,
{
    methods.fallback(async move |method: Method| -> Response {
        let mut response = match method {
            Method::OPTIONS => StatusCode::NO_CONTENT.into_response(),
            _ => {
                let mut response = refuse(allowed);
                *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
                response
            }
        };
        response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
        response
    })
}
