//! The API reference: the OpenAPI document, and an HTML page that is rendered from it.
//!
//! The page is self-contained: an inline style sheet, no scripts and no external resources.

mod page;
mod passages;
pub(super) mod reference;
mod schema;
mod text;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use http::HeaderValue;
use http::header::CONTENT_SECURITY_POLICY;

pub use passages::reference_passages;

use super::state::Edge;

/// Path of the OpenAPI document where tools look for it.
pub(super) const ROOT_OPENAPI_PATH: &str = "/openapi.json";

/// Content security policy of the page: only its inline style is allowed.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

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
