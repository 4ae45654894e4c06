//! What holds of every input, whoever sent it. The fuzzer looks for one that breaks a property, and the tests replay what
//! it kept in `fuzz/corpus`. A property panics when it is broken.

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};

use crate::credential::bearer;

/// A token is what stands behind the one scheme of the one field, and is read as itself again. The input is the lines.
pub fn authorization(data: &[u8]) {
    let mut headers = HeaderMap::new();
    for line in data.split(|byte| *byte == b'\n') {
        let Ok(value) = HeaderValue::from_bytes(line) else { return };
        headers.append(AUTHORIZATION, value);
    }
    let Some(token) = bearer(&headers) else {
        let plain = headers.len() == 1 && data.len() > 7 && data[7..].iter().all(u8::is_ascii_graphic);
        assert!(!plain || !data[..7].eq_ignore_ascii_case(b"bearer "), "{headers:?} has a token");
        return;
    };
    assert_eq!(headers.len(), 1, "nobody can say which credential was meant");
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
    fn the_corpus_keeps_them() {
        replay("authorization", super::authorization);
    }
}
