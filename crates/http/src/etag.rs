//! Entity tags and conditional responses (RFC 9110 section 8.8.3 and 13.1.2).

use std::fmt::Write;

use axum::body::Body;
use axum::response::Response;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, StatusCode};
use sha2::{Digest, Sha256};

/// A strong tag: a hash of the bytes, so that it is the same on every instance.
pub fn etag_of_bytes(body: &[u8]) -> HeaderValue {
    let mut tag = String::from("\"");
    for byte in Sha256::digest(body) {
        write!(tag, "{byte:02x}").expect("writing to a string does not fail");
    }
    tag.push('"');
    HeaderValue::from_str(&tag).expect("hexadecimal digits and quotes are visible ASCII")
}

/// Adds the tag, and turns the response into a 304 if `If-None-Match` has it. Uses the weak comparison, as required for
/// GET.
pub fn with_etag(mut response: Response, tag: HeaderValue, request: &HeaderMap) -> Response {
    let opaque = tag.to_str().unwrap_or_default().trim_start_matches("W/");
    let matches = known_tags(request).any(|known| known == opaque || known == "*");
    response.headers_mut().insert(ETAG, tag);
    if matches {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        *response.body_mut() = Body::empty();
        response.headers_mut().remove(CONTENT_TYPE);
        response.headers_mut().remove(CONTENT_LENGTH);
    }
    response
}

/// The tags in `If-None-Match`, quoted and without the `W/` prefix. `*` matches every tag.
pub fn known_tags(request: &HeaderMap) -> impl Iterator<Item = &str> {
    let lines = request.get_all(IF_NONE_MATCH).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(|tag| tag.trim().trim_start_matches("W/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matching_if_none_match_turns_the_response_into_304() {
        let cases: [(&[&str], bool); 10] = [
            (&[], false),
            (&["W/\"4\""], true),
            (&["\"4\""], true),
            (&["*"], true),
            (&["W/\"3\""], false),
            (&["W/\"3\", W/\"4\""], true),
            (&["\"x\"", "W/\"4\""], true),
            (&["4"], false),
            (&["W/\"44\""], false),
            (&["\"\""], false),
        ];
        for (lines, matches) in cases {
            let mut request = HeaderMap::new();
            for line in lines {
                request.append(IF_NONE_MATCH, HeaderValue::from_static(line));
            }
            let tag = HeaderValue::from_static("W/\"4\"");
            let response = with_etag(Response::new(Body::from("x")), tag, &request);
            assert_eq!(response.status() == StatusCode::NOT_MODIFIED, matches, "{lines:?}");
            assert_eq!(response.headers()[ETAG], "W/\"4\"");
        }
    }

    #[test]
    fn tag_of_bytes_depends_on_them_only() {
        assert_eq!(etag_of_bytes(b"a"), etag_of_bytes(b"a"));
        assert_ne!(etag_of_bytes(b"a"), etag_of_bytes(b"b"));
    }
}
