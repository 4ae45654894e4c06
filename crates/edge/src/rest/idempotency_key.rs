//! The `Idempotency-Key` header as it was meant. Its syntax is for the core.

use grabd_proto::v1::Unparsed;
use http::{HeaderMap, HeaderName};

use super::call::unparsed;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The key of a request. The quotes of a structured field's string are not part of it; two lines are told to the core as
/// a value it cannot accept.
pub(super) fn of(headers: &HeaderMap, refused: &mut Vec<Unparsed>) -> Option<String> {
    let mut lines = headers.get_all(IDEMPOTENCY_KEY).iter();
    let key = lines.next()?;
    let more = lines.count();
    match key.to_str() {
        Ok(key) if more == 0 => {
            let bare = key.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(key);
            Some(bare.to_owned())
        }
        Ok(_) => {
            refused.push(unparsed("Idempotency-Key", &format!("{} header lines", more + 1)));
            None
        }
        Err(_) => {
            refused.push(unparsed("Idempotency-Key", &String::from_utf8_lossy(key.as_bytes())));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn one_line_without_its_quotes() {
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
            let mut refused = Vec::new();
            assert_eq!(of(&headers, &mut refused).as_deref(), key, "{lines:?}");
            assert_eq!(refused, Vec::from_iter(seen.map(|seen| unparsed("Idempotency-Key", seen))), "{lines:?}");
        }
    }
}
