//! The id of a request, for the log and for errors.

use http::{HeaderMap, HeaderValue};

use super::headers::REQUEST_ID;

/// The request id. `common_headers` inserts it into every request.
pub(crate) fn request_id(headers: &HeaderMap) -> &HeaderValue {
    headers.get(REQUEST_ID).expect("common_headers gives every request an id")
}
