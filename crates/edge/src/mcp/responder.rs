//! Responds to a finished call.

use std::sync::Arc;

use axum::response::Response;
use grabd_proto::v1::ErrorCode as Code;
use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderName};

use super::era::Era;
use super::json_rpc;
use super::message::Id;
use super::state::Mcp;
use super::tools::{ToolResult, error_result, success_result};
use crate::rest::rate_limit_headers;

/// Builds the response to a finished call.
pub(super) struct CallResponder {
    pub(super) mcp: Arc<Mcp>,
    pub(super) era: Era,
    pub(super) id: Id,
    pub(super) headers: HeaderMap,
}

impl CallResponder {
    /// The complete response.
    pub(super) fn response(&self, outcome: ToolResult) -> Response {
        match outcome {
            // Clients need the HTTP status to request a new token.
            Err(failure) if matches!(failure.code, Code::Unauthorized | Code::Forbidden) => {
                self.mcp.http_error(&self.headers, failure)
            }
            Err(failure) => {
                let mut response = json_rpc::result(&self.id, error_result(self.era, &failure), &failure.headers);
                copy(&failure.headers, RETRY_AFTER, response.headers_mut());
                response
            }
            Ok(success) => {
                let metadata = success.metadata.clone();
                json_rpc::result(&self.id, success_result(self.era, success), &metadata)
            }
        }
    }

    /// The last message of an event stream.
    pub(super) fn last_message(&self, outcome: ToolResult) -> Vec<u8> {
        match outcome {
            Err(failure) => json_rpc::result_body(&self.id, error_result(self.era, &failure)),
            Ok(success) => json_rpc::result_body(&self.id, success_result(self.era, success)),
        }
    }
}

fn copy(from: &HeaderMap, name: HeaderName, to: &mut HeaderMap) {
    rate_limit_headers::copy(from, to);
    if let Some(value) = from.get(&name) {
        to.insert(name, value.clone());
    }
}
