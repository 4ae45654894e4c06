//! What pages of other origins may read: what anybody may read without a credential, and nothing that a key opens.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
};
use http::{HeaderMap, HeaderValue, Method};

use super::{docs, pricing};

/// The paths of this face that are open.
pub(super) const OPEN: [&str; 2] = [pricing::PATH, docs::DOCUMENT];

/// A layer for routes that are open as a whole.
pub async fn open_to_browsers(request: Request, next: Next) -> Response {
    let method = request.method().clone();
    let mut response = next.run(request).await;
    open(&method, response.headers_mut());
    response
}

/// Lets pages of any origin read the answer, errors included, without credentials.
pub(super) fn open(method: &Method, headers: &mut HeaderMap) {
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
