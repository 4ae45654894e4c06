//! The entity tags of grabs.

use grabd_http::known_tags;
use http::{HeaderMap, HeaderValue};

/// The weak tag of a grab's revision. It is weak because a release may add members to the JSON of a revision.
pub(super) fn of_revision(revision: i64) -> HeaderValue {
    HeaderValue::from_str(&format!("W/\"{revision}\"")).expect("digits and quotes are visible ASCII")
}

/// The latest revision in `If-None-Match`.
pub(super) fn known_revision(headers: &HeaderMap) -> Option<i64> {
    known_tags(headers).filter_map(|tag| tag.trim_matches('"').parse().ok()).max()
}

#[cfg(test)]
mod tests {
    use http::header::IF_NONE_MATCH;

    use super::*;

    #[test]
    fn known_revision_is_the_latest_in_if_none_match() {
        let cases: [(&[&str], Option<i64>); 8] = [
            (&[], None),
            (&["W/\"4\""], Some(4)),
            (&["\"4\""], Some(4)),
            (&["*"], None),
            (&["W/\"3\", W/\"4\""], Some(4)),
            (&["\"x\"", "W/\"4\""], Some(4)),
            (&["4"], Some(4)),
            (&["\"\""], None),
        ];
        for (lines, revision) in cases {
            let mut request = HeaderMap::new();
            for line in lines {
                request.append(IF_NONE_MATCH, HeaderValue::from_static(line));
            }
            assert_eq!(known_revision(&request), revision, "{lines:?}");
        }
    }
}
