//! Entity tags and what a caller already has.

use std::fmt::Write;

use axum::body::Body;
use axum::response::Response;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, StatusCode};
use sha2::{Digest, Sha256};

/// The weak tag of a grab's revision: the JSON of one revision may gain members with a release.
pub(super) fn of_revision(revision: i64) -> HeaderValue {
    HeaderValue::from_str(&format!("W/\"{revision}\"")).expect("digits and quotes are visible ASCII")
}

/// A strong tag: the same bytes have the same one on every instance.
pub(super) fn of_bytes(body: &[u8]) -> HeaderValue {
    let mut tag = String::from("\"");
    for byte in Sha256::digest(body) {
        write!(tag, "{byte:02x}").expect("writing to a string does not fail");
    }
    tag.push('"');
    HeaderValue::from_str(&tag).expect("hexadecimal digits and quotes are visible ASCII")
}

/// The latest revision that a caller says it has.
pub(super) fn known_revision(headers: &HeaderMap) -> Option<i64> {
    known(headers).filter_map(|tag| tag.trim_matches('"').parse().ok()).max()
}

/// Tags an answer, and leaves its body out when the caller has it. The comparison is the weak one that GET asks for.
pub(super) fn tagged(mut response: Response, tag: HeaderValue, request: &HeaderMap) -> Response {
    let opaque = tag.to_str().unwrap_or_default().trim_start_matches("W/");
    let same = known(request).any(|known| known == opaque || known == "*");
    response.headers_mut().insert(ETAG, tag);
    if same {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        *response.body_mut() = Body::empty();
        response.headers_mut().remove(CONTENT_TYPE);
        response.headers_mut().remove(CONTENT_LENGTH);
    }
    response
}

/// The tags in `If-None-Match`, quoted and without their weakness.
fn known(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(IF_NONE_MATCH).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(|tag| tag.trim().trim_start_matches("W/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_caller_has_is_not_sent_again() {
        let cases: [(&[&str], bool, Option<i64>); 10] = [
            (&[], false, None),
            (&["W/\"4\""], true, Some(4)),
            (&["\"4\""], true, Some(4)),
            (&["*"], true, None),
            (&["W/\"3\""], false, Some(3)),
            (&["W/\"3\", W/\"4\""], true, Some(4)),
            (&["\"x\"", "W/\"4\""], true, Some(4)),
            (&["4"], false, Some(4)),
            (&["W/\"44\""], false, Some(44)),
            (&["\"\""], false, None),
        ];
        for (lines, same, revision) in cases {
            let mut request = HeaderMap::new();
            for line in lines {
                request.append(IF_NONE_MATCH, HeaderValue::from_static(line));
            }
            let response = tagged(Response::new(Body::from("x")), of_revision(4), &request);
            assert_eq!(response.status() == StatusCode::NOT_MODIFIED, same, "{lines:?}");
            assert_eq!(response.headers()[ETAG], "W/\"4\"");
            assert_eq!(known_revision(&request), revision, "{lines:?}");
        }
    }
}
