//! Headers that every answer has, and how an answer is put together.

use axum::body::Body;
use axum::response::Response;
use grabd_proto::origin;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::Serialize;
use uuid::Uuid;

use super::limits;

/// Names the request in our log and to its caller.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static(grabd_proto::reason::REQUEST_ID);
/// What is left of the caller's limits.
pub(crate) const RATE_LIMIT: HeaderName = HeaderName::from_static(grabd_proto::reason::RATE_LIMIT);
/// The limits themselves.
pub(crate) const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static(grabd_proto::reason::RATE_LIMIT_POLICY);
/// Which of the caller's preferences were honoured.
pub(crate) const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");
/// This answer was given before, to an earlier request with the same key.
pub(crate) const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// For answers about one team that change at any time.
pub(crate) const PRIVATE: &str = "private, no-store";

/// The caller's request id when it has an acceptable one, else a fresh one.
pub(crate) fn request_id(headers: &HeaderMap) -> HeaderValue {
    let echoed = headers.get(REQUEST_ID).filter(|id| id.to_str().ok().and_then(origin::request_id).is_some());
    echoed.cloned().unwrap_or_else(fresh_request_id)
}

#[expect(clippy::disallowed_methods, reason = "a face names the requests that come in; nothing is decided by this id")]
fn fresh_request_id() -> HeaderValue {
    let mut text = Uuid::encode_buffer();
    let id = Uuid::now_v7().as_hyphenated().encode_lower(&mut text);
    HeaderValue::from_str(id).expect("a UUID is visible ASCII")
}

/// A JSON answer with the limits that the core told in its metadata.
pub(crate) fn json<T: Serialize>(
    status: StatusCode,
    caching: &'static str,
    body: &T,
    metadata: &HeaderMap,
) -> Response {
    answer(status, caching, Body::from(to_json(body)), metadata)
}

/// The same with JSON that is already written.
pub(crate) fn answer(status: StatusCode, caching: &'static str, body: Body, metadata: &HeaderMap) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(caching));
    limits::copy(metadata, headers);
    response
}

/// The bytes of a wire struct.
pub(crate) fn to_json<T: Serialize>(body: &T) -> Vec<u8> {
    serde_json::to_vec(body).expect("keys of wire structs are strings and their parts always serialise")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acceptable_request_ids_are_echoed_and_others_replaced() {
        let long = "a".repeat(129);
        for (sent, echoed) in [
            (Some("a"), true),
            (Some("A.b_c-9"), true),
            (Some(&long[..128]), true),
            (Some(&long[..]), false),
            (Some(""), false),
            (Some("a b"), false),
            (Some("a/b"), false),
            (None, false),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(sent) = sent {
                headers.insert(REQUEST_ID, HeaderValue::from_str(sent).unwrap());
            }
            let id = request_id(&headers);
            assert_eq!(Some(id.to_str().unwrap()) == sent, echoed, "{sent:?}");
            if !echoed {
                assert_eq!(Uuid::parse_str(id.to_str().unwrap()).unwrap().get_version_num(), 7);
                assert_ne!(request_id(&headers), id);
            }
        }
    }
}
