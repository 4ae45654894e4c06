//! Where people go on to when they have signed in: to where they were going, and never to another site.

use url::Url;

/// Bytes of the longest address that is remembered; an authorization request is the longest there is.
const LONGEST: usize = 12 * 1024;

/// A path of our own, with its query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Next(String);

impl Next {
    /// The path in `text`, or `otherwise` when it is not surely ours.
    pub(crate) fn parse(text: &str, otherwise: &'static str) -> Self {
        Self(if is_own(text) { text.to_owned() } else { otherwise.to_owned() })
    }

    /// As a header or a field has it.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Without the query.
    pub(crate) fn path(&self) -> &str {
        self.0.split('?').next().unwrap_or_default()
    }
}

/// Browsers drop tabs and line ends, read `\` as `/`, and take what follows two of them as a host. So nothing passes but
/// one slash and visible ASCII without backslashes, and what is left has to stay on a host that nobody owns.
fn is_own(text: &str) -> bool {
    let mut bytes = text.bytes();
    if text.len() > LONGEST || bytes.next() != Some(b'/') || matches!(bytes.next(), Some(b'/' | b'\\')) {
        return false;
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\') {
        return false;
    }
    let here = Url::parse("https://here.invalid/").expect("an address that is written down");
    here.join(text).is_ok_and(|joined| joined.origin() == here.origin())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_sent_to_another_site() {
        for own in ["/", "/apps", "/oauth/authorize?client_id=https%3A%2F%2Fa.example%2F&state=a+b", "/a?b=//c", "/a#b"]
        {
            assert_eq!(Next::parse(own, "/apps").as_str(), own);
        }
        let long = format!("/{}", "a".repeat(LONGEST));
        for foreign in [
            "",
            "apps",
            "//evil.example",
            "///evil.example",
            "/\\evil.example",
            "\\\\evil.example",
            "/\t/evil.example",
            "/\n/evil.example",
            "\t//evil.example",
            " //evil.example",
            "/ /evil.example",
            "/a\\b",
            "/\u{e4}",
            "/a\r\nSet-Cookie: a=b",
            "https://evil.example",
            "https:evil.example",
            "javascript:alert(1)",
            "data:text/html,x",
            "?//evil.example",
            &long,
        ] {
            assert_eq!(Next::parse(foreign, "/apps").as_str(), "/apps", "{foreign:?}");
        }
    }

    #[test]
    fn the_path_ends_before_the_query() {
        assert_eq!(Next::parse("/oauth/authorize?a=b?c", "/").path(), "/oauth/authorize");
    }
}
