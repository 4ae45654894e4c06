//! Header names and construction of responses.

use axum::body::Body;
use axum::response::Response;
use grabd_proto::correlation;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::Serialize;
use uuid::Uuid;

use super::rate_limit_headers;

/// Identifies the request in the log and in the response.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static(grabd_proto::reason::REQUEST_ID);
/// Whose fault an error is. The error body has no member for it.
pub(crate) const ERROR_CAUSE: HeaderName = HeaderName::from_static(grabd_proto::reason::ERROR_CAUSE);
/// Preferences of the request that were applied (RFC 7240).
pub(crate) const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");
/// Marks a response that repeats the one to an earlier request with the same key.
pub(crate) const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// `Cache-Control` of responses that belong to one team and may change at any time.
pub(crate) const PRIVATE_NO_STORE: &str = "private, no-store";

/// The caller's request id if it is valid, else a new one.
pub(crate) fn request_id(headers: &HeaderMap) -> HeaderValue {
    let echoed = headers.get(REQUEST_ID).filter(|id| id.to_str().ok().and_then(correlation::request_id).is_some());
    echoed.cloned().unwrap_or_else(new_request_id)
}

#[expect(clippy::disallowed_methods, reason = "request ids are created where requests arrive; no decision uses them")]
fn new_request_id() -> HeaderValue {
    let mut text = Uuid::encode_buffer();
    let id = Uuid::now_v7().as_hyphenated().encode_lower(&mut text);
    HeaderValue::from_str(id).expect("a UUID is visible ASCII")
}

/// A JSON response with the rate limit headers of the core's metadata.
pub(crate) fn json_response<T: Serialize>(
    status: StatusCode,
    caching: &'static str,
    body: &T,
    metadata: &HeaderMap,
) -> Response {
    response(status, caching, Body::from(to_json(body)), metadata)
}

/// Like [`json_response`], with a body that is already serialized.
pub(crate) fn response(status: StatusCode, caching: &'static str, body: Body, metadata: &HeaderMap) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(caching));
    rate_limit_headers::copy(metadata, headers);
    response
}

/// Serializes a wire struct.
pub(crate) fn to_json<T: Serialize>(body: &T) -> Vec<u8> {
    serde_json::to_vec(body).expect("wire structs have string keys and serialize without errors")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_request_ids_are_echoed_and_others_replaced() {
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
