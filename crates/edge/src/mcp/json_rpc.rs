//! JSON-RPC responses and their HTTP status.

use axum::body::Body;
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use rmcp::model::{ErrorCode, ErrorData};
use serde::Serialize;

use super::era::Era;
use super::message::{Id, MalformedMessage};
use crate::rest::headers::{self, PRIVATE_NO_STORE};

#[derive(Serialize)]
struct ResultResponse<'a, T> {
    jsonrpc: &'static str,
    id: &'a Id,
    result: T,
}

#[derive(Serialize)]
struct ErrorResponse<'a> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Option<&'a Id>>,
    error: &'a ErrorData,
}

/// Serializes a response with a result.
pub(super) fn result_body<T: Serialize>(id: &Id, result: T) -> Vec<u8> {
    headers::to_json(&ResultResponse { jsonrpc: "2.0", id, result })
}

/// A response with a result.
pub(super) fn result<T: Serialize>(id: &Id, result: T, metadata: &HeaderMap) -> Response {
    headers::response(StatusCode::OK, PRIVATE_NO_STORE, Body::from(result_body(id, result)), metadata)
}

/// A protocol error. Legacy clients only read the body, so it has status 200 for them.
pub(super) fn error(era: Era, id: &Id, error: &ErrorData) -> Response {
    let status = match (era, error.code) {
        (_, ErrorCode::UNSUPPORTED_PROTOCOL_VERSION | ErrorCode::HEADER_MISMATCH) => StatusCode::BAD_REQUEST,
        (Era::Legacy, _) => StatusCode::OK,
        (Era::Modern, ErrorCode::METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        (Era::Modern, _) => StatusCode::BAD_REQUEST,
    };
    error_response(status, Some(Some(id)), error)
}

/// The response to a malformed message. An unknown id is null in JSON-RPC and omitted in the modern era.
pub(super) fn malformed(era: Era, malformed: &MalformedMessage) -> Response {
    let id = match (&malformed.id, era) {
        (Some(id), _) => Some(Some(id)),
        (None, Era::Legacy) => Some(None),
        (None, Era::Modern) => None,
    };
    error_response(StatusCode::BAD_REQUEST, id, &malformed.error)
}

fn error_response(status: StatusCode, id: Option<Option<&Id>>, error: &ErrorData) -> Response {
    let text = headers::to_json(&ErrorResponse { jsonrpc: "2.0", id, error });
    headers::response(status, PRIVATE_NO_STORE, Body::from(text), &HeaderMap::new())
}
