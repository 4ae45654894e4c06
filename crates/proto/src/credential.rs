//! The bearer credential of the `Authorization` field.

use http::HeaderMap;
use http::header::AUTHORIZATION;

/// Returns the token of `Authorization: Bearer <token>` (RFC 6750 section 2.1), or `None` if the field is missing,
/// occurs twice (ambiguous), has another scheme, or is not visible ASCII.
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut fields = headers.get_all(AUTHORIZATION).iter();
    let (field, None) = (fields.next()?, fields.next()) else { return None };
    let (scheme, token) = field.to_str().ok()?.split_once(' ')?;
    let token = token.trim_matches([' ', '\t']);
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn bearer_accepts_exactly_one_bearer_field() {
        let long = format!("Bearer {}", "a".repeat(60_000));
        let cases: [(&[&[u8]], Option<&str>); 24] = [
            (&[b"Bearer abc"], Some("abc")),
            (&[b"bearer abc"], Some("abc")),
            (&[b"BEARER   abc "], Some("abc")),
            (&[b"Bearer \t abc\t"], Some("abc")),
            (&[b"Bearer a b"], Some("a b")),
            (&[b"Bearer \"abc\""], Some("\"abc\"")),
            (&[b"Bearer a,Bearer b"], Some("a,Bearer b")),
            (&[b"Bearer Bearer"], Some("Bearer")),
            (&[long.as_bytes()], Some(&long[7..])),
            (&[], None),
            (&[b""], None),
            (&[b" "], None),
            (&[b"Bearer"], None),
            (&[b"Bearer "], None),
            (&[b"Bearer   \t"], None),
            (&[b"Bearer\tabc"], None),
            (&[b" Bearer abc"], None),
            (&[b"\"Bearer\" abc"], None),
            (&[b"Bearerabc"], None),
            (&[b"Basic eDp5"], None),
            (&[b"sk_test_x"], None),
            (&[b"Bearer sk_\xff"], None),
            (&[b"Bearer a", b"Bearer a"], None),
            (&[b"Bearer a", b"Basic eDp5"], None),
        ];
        for (lines, expected) in cases {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(AUTHORIZATION, HeaderValue::from_bytes(line).unwrap());
            }
            assert_eq!(bearer(&headers), expected, "{headers:?}");
        }
    }
}
