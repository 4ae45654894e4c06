//! The reference: the description as it is, for programs, and a page made of it at start, for people.
//!
//! The page is whole in itself: one style sheet in it, no script, nothing fetched from anywhere.

mod page;
mod schema;
mod text;

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};

use super::{Edge, etag, openapi};

/// The page for people.
pub(super) const PATH: &str = "/docs";
/// The document for programs.
pub(super) const DOCUMENT: &str = "/v1/openapi.json";

/// Nothing but the page's own style.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// Both forms, prepared once.
pub(super) struct Reference {
    document: Prepared,
    page: Prepared,
}

struct Prepared {
    bytes: Bytes,
    tag: HeaderValue,
}

impl Reference {
    /// Of the service at `origin`.
    pub(super) fn of(origin: &str) -> Self {
        let document = openapi::document(origin);
        let json = serde_json::to_value(&document).expect("keys of a description are strings");
        let page = page::render(&json);
        Self { document: Prepared::of(json.to_string()), page: Prepared::of(page) }
    }
}

impl Prepared {
    fn of(text: String) -> Self {
        Self { tag: etag::of_bytes(text.as_bytes()), bytes: text.into() }
    }

    fn answer(&self, content_type: &'static str, request: &HeaderMap) -> Response {
        let mut response = Response::new(Body::from(self.bytes.clone()));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
        etag::tagged(response, self.tag.clone(), request)
    }
}

/// `GET /v1/openapi.json`.
pub(super) async fn document(State(edge): State<Arc<Edge>>, request: Request) -> Response {
    edge.reference.document.answer("application/json", request.headers())
}

/// `GET /docs`.
pub(super) async fn page(State(edge): State<Arc<Edge>>, request: Request) -> Response {
    let mut response = edge.reference.page.answer("text/html; charset=utf-8", request.headers());
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    response
}
