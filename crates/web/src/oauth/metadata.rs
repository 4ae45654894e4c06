//! `/.well-known/…`: what there is, and who lets in (RFC 8414, RFC 9728).

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use grabd_engine::oauth::{self, Resource};
use http::StatusCode;
use serde_json::Value;

use super::answer;
use crate::Web;

fn document(body: &Value) -> Response {
    answer::json_of(StatusCode::OK, body, "public, max-age=300")
}

/// About the authorization server.
pub(super) async fn server(State(web): State<Arc<Web>>) -> Response {
    document(&oauth::metadata(&web.core))
}

/// About MCP as a resource.
pub(super) async fn mcp(State(web): State<Arc<Web>>) -> Response {
    document(&oauth::resource_metadata(&web.core, Resource::Mcp))
}

/// About REST as a resource.
pub(super) async fn api(State(web): State<Arc<Web>>) -> Response {
    document(&oauth::resource_metadata(&web.core, Resource::Api))
}
