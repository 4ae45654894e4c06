//! The `Idempotency-Key` header. The core validates the syntax of the key.

use grabd_proto::v1::Unparsed;
use http::{HeaderMap, HeaderName};

use super::call::unparsed;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The key of a request, without the quotes of a structured field string. Several header lines, or bytes that are not
/// visible ASCII, are reported to the core as an invalid value.
pub(super) fn from_headers(headers: &HeaderMap, rejected: &mut Vec<Unparsed>) -> Option<String> {
    let mut lines = headers.get_all(IDEMPOTENCY_KEY).iter();
    let key = lines.next()?;
    let more = lines.count();
    match key.to_str() {
        Ok(key) if more == 0 => {
            let bare = key.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(key);
            Some(bare.to_owned())
        }
        Ok(_) => {
            rejected.push(unparsed("Idempotency-Key", &format!("{} header lines", more + 1)));
            None
        }
        Err(_) => {
            rejected.push(unparsed("Idempotency-Key", &String::from_utf8_lossy(key.as_bytes())));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn key_is_read_from_one_header_line_without_its_quotes() {
        let long = "k".repeat(60_000);
        type Case<'a> = (&'a [&'a [u8]], Option<&'a str>, Option<&'a str>);
        let cases: [Case<'_>; 17] = [
            (&[], None, None),
            (&[b"a"], Some("a"), None),
            (&[b"\"a\""], Some("a"), None),
            (&[b"\"\"a\"\""], Some("\"a\""), None),
            (&[b"\"a"], Some("\"a"), None),
            (&[b"a\""], Some("a\""), None),
            (&[b"\""], Some("\""), None),
            (&[b"\"\""], Some(""), None),
            (&[b"'a'"], Some("'a'"), None),
            (&[b"a, b"], Some("a, b"), None),
            (&[b"a\tb"], Some("a\tb"), None),
            (&[b""], Some(""), None),
            (&[long.as_bytes()], Some(&long), None),
            (&[b"a", b"a"], None, Some("2 header lines")),
            (&[b"a", b"", b"\xff"], None, Some("3 header lines")),
            (&[b"a\xe9"], None, Some("a\u{fffd}")),
            (&["\"é\"".as_bytes()], None, Some("\"é\"")),
        ];
        for (lines, key, seen) in cases {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(IDEMPOTENCY_KEY, HeaderValue::from_bytes(line).unwrap());
            }
            let mut rejected = Vec::new();
            assert_eq!(from_headers(&headers, &mut rejected).as_deref(), key, "{lines:?}");
            assert_eq!(rejected, Vec::from_iter(seen.map(|seen| unparsed("Idempotency-Key", seen))), "{lines:?}");
        }
    }
}
