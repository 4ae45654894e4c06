//! Patterns in which `*` stands for any run of characters, and the form in which they are compared with addresses.

/// Whether a pattern matches the whole of a text, or only its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    Whole,
    Beginning,
}

/// Whether a pattern matches a text. Each part between two `*` is searched once, so that the time is linear in the text.
pub(super) fn matches(pattern: &str, text: &str, extent: Extent) -> bool {
    let Some((first, others)) = pattern.split_once('*') else {
        return match extent {
            Extent::Whole => text == pattern,
            Extent::Beginning => text.starts_with(pattern),
        };
    };
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let (middle, last) = match others.rsplit_once('*') {
        Some((middle, last)) => (Some(middle), last),
        None => (None, others),
    };
    for part in middle.into_iter().flat_map(|middle| middle.split('*')) {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    match extent {
        Extent::Whole => rest.ends_with(last),
        Extent::Beginning => rest.contains(last),
    }
}

/// A path with its query, as it is compared with patterns. Characters that have a meaning in patterns are percent-encoded.
pub(super) fn comparable_path(path: &str) -> String {
    comparable(path).replace('*', "%2A").replace('$', "%24")
}

/// A pattern, as it is compared with paths.
pub(super) fn comparable_pattern(pattern: &str) -> String {
    comparable(pattern).replace('$', "%24")
}

/// The form in which paths and patterns are compared (RFC 9309, section 2.2.2): characters outside of ASCII are percent-encoded,
/// and encoded ones that need no encoding are decoded.
fn comparable(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut result = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let encoded = match byte {
            b'%' => bytes.get(at + 1..at + 3).and_then(hex_byte),
            _ => None,
        };
        match encoded {
            Some(decoded) if is_unreserved(decoded) => result.push(char::from(decoded)),
            Some(decoded) => push_encoded(&mut result, decoded),
            None if byte.is_ascii() => result.push(char::from(byte)),
            None => push_encoded(&mut result, byte),
        }
        at += if encoded.is_some() { 3 } else { 1 };
    }
    result
}

/// Characters that mean the same with and without an encoding (RFC 3986, section 2.3).
fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

fn hex_byte(digits: &[u8]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    match digits {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    }
}

fn push_encoded(text: &mut String, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    text.push('%');
    text.push(char::from(DIGITS[usize::from(byte >> 4)]));
    text.push(char::from(DIGITS[usize::from(byte & 15)]));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn star_matches_any_run_of_characters() {
        for (pattern, text, whole, beginning) in [
            ("/a", "/a", true, true),
            ("/a", "/ab", false, true),
            ("/a*", "/ab", true, true),
            ("*", "", true, true),
            ("/*/c", "/a/b/c", true, true),
            ("/*/c", "/a/c/d", false, true),
            ("/*.php", "/a.php?x=1", false, true),
            ("/*a*a", "/a", false, false),
            ("/*a*a", "/aa", true, true),
            ("/**b", "/ab", true, true),
            ("/a*b*c", "/a-b-b-c", true, true),
            ("/a*bc", "/abcbc", true, true),
            ("", "/a", false, true),
        ] {
            assert_eq!(matches(pattern, text, Extent::Whole), whole, "{pattern} {text}");
            assert_eq!(matches(pattern, text, Extent::Beginning), beginning, "{pattern} {text}");
        }
    }

    #[test]
    fn encodings_of_a_path_are_compared_in_one_form() {
        // The examples of RFC 9309, section 2.2.2.
        for (text, expected) in [
            ("/foo/bar?baz=quz", "/foo/bar?baz=quz"),
            ("/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https://foo.bar"),
            ("/foo/bar/\u{30c4}", "/foo/bar/%E3%83%84"),
            ("/foo/bar/%E3%83%84", "/foo/bar/%E3%83%84"),
            ("/foo/bar/%e3%83%84", "/foo/bar/%E3%83%84"),
            ("/foo/bar/%62%61%7A", "/foo/bar/baz"),
            ("/a%2Fb%", "/a%2Fb%"),
            ("/%4", "/%4"),
        ] {
            assert_eq!(comparable(text), expected, "{text}");
        }
    }
}
