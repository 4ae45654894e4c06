//! JSON-RPC answers, and which HTTP status each has.

use axum::body::Body;
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use rmcp::model::{ErrorCode, ErrorData};
use serde::Serialize;

use super::PRIVATE;
use super::era::Era;
use super::message::{Id, Malformed};
use crate::rest::headers;

#[derive(Serialize)]
struct Success<'a, T> {
    jsonrpc: &'static str,
    id: &'a Id,
    result: T,
}

#[derive(Serialize)]
struct Failure<'a> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Option<&'a Id>>,
    error: &'a ErrorData,
}

/// The text of an answer with a result.
pub(super) fn text_of<T: Serialize>(id: &Id, result: T) -> Vec<u8> {
    headers::to_json(&Success { jsonrpc: "2.0", id, result })
}

/// An answer with a result.
pub(super) fn result<T: Serialize>(id: &Id, result: T, metadata: &HeaderMap) -> Response {
    headers::answer(StatusCode::OK, PRIVATE, Body::from(text_of(id, result)), metadata)
}

/// An error of the protocol. Legacy clients look at nothing but the body.
pub(super) fn error(era: Era, id: &Id, error: &ErrorData) -> Response {
    let status = match (era, error.code) {
        (_, ErrorCode::UNSUPPORTED_PROTOCOL_VERSION | ErrorCode::HEADER_MISMATCH) => StatusCode::BAD_REQUEST,
        (Era::Legacy, _) => StatusCode::OK,
        (Era::Modern, ErrorCode::METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        (Era::Modern, _) => StatusCode::BAD_REQUEST,
    };
    failure(status, Some(Some(id)), error)
}

/// The answer to what is no request. An id that could not be read is null in JSON-RPC, and left out in the modern era.
pub(super) fn malformed(era: Era, malformed: &Malformed) -> Response {
    let id = match (&malformed.id, era) {
        (Some(id), _) => Some(Some(id)),
        (None, Era::Legacy) => Some(None),
        (None, Era::Modern) => None,
    };
    failure(StatusCode::BAD_REQUEST, id, &malformed.error)
}

fn failure(status: StatusCode, id: Option<Option<&Id>>, error: &ErrorData) -> Response {
    let text = headers::to_json(&Failure { jsonrpc: "2.0", id, error });
    headers::answer(status, PRIVATE, Body::from(text), &HeaderMap::new())
}
