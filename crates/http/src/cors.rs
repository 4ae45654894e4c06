//! CORS headers for responses that need no credential, which pages of any origin may read.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
};
use http::{HeaderMap, HeaderValue, Method};

/// Middleware for routers that pages of any origin may read.
pub async fn allow_any_origin(request: Request, next: Next) -> Response {
    let method = request.method().clone();
    let mut response = next.run(request).await;
    insert_cors_headers(&method, response.headers_mut());
    response
}

/// Lets pages of any origin read the response, errors included, without credentials.
pub fn insert_cors_headers(method: &Method, headers: &mut HeaderMap) {
    let any = HeaderValue::from_static("*");
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, any.clone());
    if method == Method::OPTIONS {
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, HEAD, OPTIONS"));
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, any);
        headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
    } else {
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, any);
    }
}
