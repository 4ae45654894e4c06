//! Parser properties that hold for every input. The fuzzer searches for counterexamples; the tests replay
//! `fuzz/corpus`. A property panics on a violation.

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};

use crate::credential::bearer;

/// A token is the text after the scheme of a single field, and parsing it again returns the same token. The input is
/// the field lines.
pub fn authorization(data: &[u8]) {
    let mut headers = HeaderMap::new();
    for line in data.split(|byte| *byte == b'\n') {
        let Ok(value) = HeaderValue::from_bytes(line) else { return };
        headers.append(AUTHORIZATION, value);
    }
    let Some(token) = bearer(&headers) else {
        let is_plain = headers.len() == 1 && data.len() > 7 && data[7..].iter().all(u8::is_ascii_graphic);
        assert!(!is_plain || !data[..7].eq_ignore_ascii_case(b"bearer "), "{headers:?} has a token");
        return;
    };
    assert_eq!(headers.len(), 1, "several Authorization fields are ambiguous");
    assert!(data[..7].eq_ignore_ascii_case(b"bearer "), "{headers:?}");
    assert!(token.bytes().all(|byte| byte.is_ascii_graphic() || [b' ', b'\t'].contains(&byte)), "{token:?}");
    assert_eq!(token.as_bytes(), data[7..].trim_ascii(), "{headers:?}");

    let again = HeaderValue::from_str(&format!("Bearer {token}")).expect("a token is visible ASCII");
    headers.insert(AUTHORIZATION, again.clone());
    assert_eq!(bearer(&headers).map(str::as_bytes), Some(data[7..].trim_ascii()));
    headers.append(AUTHORIZATION, again);
    assert_eq!(bearer(&headers), None);
}

#[cfg(test)]
#[path = "../../../fuzz/replay.rs"]
mod replay;

#[cfg(test)]
mod tests {
    use super::replay::replay;

    #[test]
    fn corpus_satisfies_the_properties() {
        replay("authorization", super::authorization);
    }
}
