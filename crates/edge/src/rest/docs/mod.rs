//! The API reference: the OpenAPI document, and an HTML page that is rendered from it at startup.
//!
//! The page is self-contained: an inline style sheet, no scripts and no external resources.

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

/// Path of the HTML page.
pub(super) const PATH: &str = "/docs/api";
/// Path of the OpenAPI document.
pub(super) const OPENAPI_PATH: &str = "/v1/openapi.json";

/// The same document where tools look for it.
pub(super) const ROOT_OPENAPI_PATH: &str = "/openapi.json";

/// Content security policy of the page: only its inline style is allowed.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// Both representations, rendered once.
pub(super) struct Reference {
    document: CachedDocument,
    page: CachedDocument,
}

struct CachedDocument {
    bytes: Bytes,
    tag: HeaderValue,
}

impl Reference {
    /// Renders the reference of the service at `origin`. Apps are authorized at `auth_url`.
    pub(super) fn render(origin: &str, auth_url: &str) -> Self {
        let document = openapi::document(origin, auth_url);
        let json = serde_json::to_value(&document).expect("an OpenAPI document has string keys");
        let page = page::render(&json);
        Self { document: CachedDocument::new(json.to_string()), page: CachedDocument::new(page) }
    }
}

impl CachedDocument {
    fn new(text: String) -> Self {
        Self { tag: etag::of_bytes(text.as_bytes()), bytes: text.into() }
    }

    fn response(&self, content_type: &'static str, request: &HeaderMap) -> Response {
        let mut response = Response::new(Body::from(self.bytes.clone()));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
        etag::with_etag(response, self.tag.clone(), request)
    }
}

/// `GET /v1/openapi.json`.
pub(super) async fn document(State(edge): State<Arc<Edge>>, request: Request) -> Response {
    edge.reference.document.response("application/json", request.headers())
}

/// `GET /docs/api`.
pub(super) async fn page(State(edge): State<Arc<Edge>>, request: Request) -> Response {
    let mut response = edge.reference.page.response("text/html; charset=utf-8", request.headers());
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    response
}
