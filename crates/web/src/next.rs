//! The redirect target after sign-in. It is always a path on this site.

use url::Url;

/// Maximum length of a target in bytes. Authorization requests are the longest targets.
const MAX_BYTES: usize = 12 * 1024;

/// A path on this site, with its query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NextPath(String);

impl NextPath {
    /// The path in `text`, or `otherwise` if it could lead to another site.
    pub(crate) fn parse(text: &str, otherwise: &'static str) -> Self {
        Self(if is_local(text) { text.to_owned() } else { otherwise.to_owned() })
    }

    /// The path and query.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The path without the query.
    pub(crate) fn path(&self) -> &str {
        self.0.split('?').next().unwrap_or_default()
    }
}

/// Browsers remove tabs and line breaks, read `\` as `/`, and take the text after two slashes as a host. So only a
/// single leading slash and visible ASCII without backslashes is accepted, and the text must resolve to the same
/// origin.
fn is_local(text: &str) -> bool {
    let mut bytes = text.bytes();
    if text.len() > MAX_BYTES || bytes.next() != Some(b'/') || matches!(bytes.next(), Some(b'/' | b'\\')) {
        return false;
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\') {
        return false;
    }
    let here = Url::parse("https://here.invalid/").expect("the base URL is valid");
    here.join(text).is_ok_and(|joined| joined.origin() == here.origin())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_on_other_sites_are_replaced() {
        for own in ["/", "/apps", "/oauth/authorize?client_id=https%3A%2F%2Fa.example%2F&state=a+b", "/a?b=//c", "/a#b"]
        {
            assert_eq!(NextPath::parse(own, "/apps").as_str(), own);
        }
        let long = format!("/{}", "a".repeat(MAX_BYTES));
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
            assert_eq!(NextPath::parse(foreign, "/apps").as_str(), "/apps", "{foreign:?}");
        }
    }

    #[test]
    fn path_excludes_the_query() {
        assert_eq!(NextPath::parse("/oauth/authorize?a=b?c", "/").path(), "/oauth/authorize");
    }
}
