//! `/.well-known/…`: authorization server metadata (RFC 8414) and protected resource metadata (RFC 9728).

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use grabd_engine::oauth::{self, Resource};
use http::StatusCode;
use serde_json::Value;

use super::response;
use crate::state::Web;

fn document(body: &Value) -> Response {
    response::json_response(StatusCode::OK, body, "public, max-age=300")
}

/// Metadata of the authorization server.
pub(super) async fn server(State(web): State<Arc<Web>>) -> Response {
    document(&oauth::metadata(&web.core))
}

/// Metadata of the MCP resource.
pub(super) async fn mcp(State(web): State<Arc<Web>>) -> Response {
    document(&oauth::resource_metadata(&web.core, Resource::Mcp))
}

/// Metadata of the whole service.
pub(super) async fn service(State(web): State<Arc<Web>>) -> Response {
    document(&oauth::resource_metadata(&web.core, Resource::Service))
}

/// Metadata of the REST resource.
pub(super) async fn api(State(web): State<Arc<Web>>) -> Response {
    document(&oauth::resource_metadata(&web.core, Resource::Api))
}
