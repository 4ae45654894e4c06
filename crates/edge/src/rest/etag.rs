//! Entity tags and conditional responses.

use std::fmt::Write;

use axum::body::Body;
use axum::response::Response;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, StatusCode};
use sha2::{Digest, Sha256};

/// The weak tag of a grab's revision. It is weak because a release may add members to the JSON of a revision.
pub(super) fn of_revision(revision: i64) -> HeaderValue {
    HeaderValue::from_str(&format!("W/\"{revision}\"")).expect("digits and quotes are visible ASCII")
}

/// A strong tag: a hash of the bytes, so that it is the same on every instance.
pub(super) fn of_bytes(body: &[u8]) -> HeaderValue {
    let mut tag = String::from("\"");
    for byte in Sha256::digest(body) {
        write!(tag, "{byte:02x}").expect("writing to a string does not fail");
    }
    tag.push('"');
    HeaderValue::from_str(&tag).expect("hexadecimal digits and quotes are visible ASCII")
}

/// The latest revision in `If-None-Match`.
pub(super) fn known_revision(headers: &HeaderMap) -> Option<i64> {
    if_none_match(headers).filter_map(|tag| tag.trim_matches('"').parse().ok()).max()
}

/// Adds the tag, and turns the response into a 304 if `If-None-Match` has it. Uses the weak comparison, as required for
/// GET.
pub(super) fn with_etag(mut response: Response, tag: HeaderValue, request: &HeaderMap) -> Response {
    let opaque = tag.to_str().unwrap_or_default().trim_start_matches("W/");
    let matches = if_none_match(request).any(|known| known == opaque || known == "*");
    response.headers_mut().insert(ETAG, tag);
    if matches {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        *response.body_mut() = Body::empty();
        response.headers_mut().remove(CONTENT_TYPE);
        response.headers_mut().remove(CONTENT_LENGTH);
    }
    response
}

/// The tags in `If-None-Match`, quoted and without the `W/` prefix.
fn if_none_match(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(IF_NONE_MATCH).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(|tag| tag.trim().trim_start_matches("W/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matching_if_none_match_turns_the_response_into_304() {
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
        for (lines, matches, revision) in cases {
            let mut request = HeaderMap::new();
            for line in lines {
                request.append(IF_NONE_MATCH, HeaderValue::from_static(line));
            }
            let response = with_etag(Response::new(Body::from("x")), of_revision(4), &request);
            assert_eq!(response.status() == StatusCode::NOT_MODIFIED, matches, "{lines:?}");
            assert_eq!(response.headers()[ETAG], "W/\"4\"");
            assert_eq!(known_revision(&request), revision, "{lines:?}");
        }
    }
}
