//! The OpenAPI document, and the pages of the API reference that are rendered from it. The web app shows the pages between
//! the other documentation.

pub(super) mod cached_document;
mod document;
mod operation;
mod pages;
mod schema;
mod text;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;

pub use pages::{ReferencePage, reference_pages};

use super::state::Edge;

/// Path of the OpenAPI document where tools look for it.
pub(super) const ROOT_OPENAPI_PATH: &str = "/openapi.json";

/// `GET /v1/openapi.json`.
pub(super) async fn document(State(edge): State<Arc<Edge>>, request: Request) -> Response {
    edge.document.response("application/json", request.headers())
}
