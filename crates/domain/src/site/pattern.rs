//! Patterns of addresses that a job captures or leaves out.

use std::fmt;

use super::glob::{Extent, comparable_pattern, matches};

/// The most patterns of each kind.
pub const MAX_PATTERNS: usize = 20;
/// The longest pattern, in characters.
pub const PATTERN_CHARS: usize = 200;

/// A pattern that is matched against the path and the query of an address. `*` stands for any run of characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    /// The form in which it is compared.
    comparable: String,
}

impl Pattern {
    /// Parses a pattern. `None` if it is empty, too long, or begins with neither `/` nor `*`.
    pub fn parse(text: &str) -> Option<Self> {
        let has_length = (1..=PATTERN_CHARS).contains(&text.chars().count());
        let is_valid = has_length && text.starts_with(['/', '*']) && !text.chars().any(char::is_control);
        is_valid.then(|| Self { text: text.to_owned(), comparable: comparable_pattern(text) })
    }

    /// Whether the pattern matches a path with its query, in the form in which they are compared.
    pub(super) fn matches(&self, path: &str) -> bool {
        matches(&self.comparable, path, Extent::Whole)
    }

    /// The pattern.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::super::address::{normal_address, path_and_query};
    use super::super::glob::comparable_path;
    use super::*;

    #[test]
    fn pattern_is_matched_against_path_and_query() {
        for (pattern, url, expected) in [
            ("/blog/*", "https://example.com/blog/2026/a?b=1", true),
            ("/blog/*", "https://example.com/blog", false),
            ("/blog", "https://example.com/blog", true),
            ("/blog", "https://example.com/blog?page=2", false),
            ("*?page=*", "https://example.com/blog?page=2", true),
            ("/\u{fc}ber/*", "https://example.com/%c3%bcber/uns", true),
            ("*", "https://example.com/", true),
            ("/Blog", "https://example.com/blog", false),
        ] {
            let (pattern, url) = (Pattern::parse(pattern).unwrap(), normal_address(url).unwrap());
            assert_eq!(pattern.matches(&comparable_path(path_and_query(&url))), expected, "{pattern} {url}");
        }
    }

    #[test]
    fn pattern_of_something_else_is_refused() {
        let long = format!("/{}", "a".repeat(PATTERN_CHARS));
        for text in ["", " ", "blog/*", " /blog/*", "https://example.com/*", "/a\nb", &long] {
            assert_eq!(Pattern::parse(text), None, "{text}");
        }
        assert!(Pattern::parse(&long[..PATTERN_CHARS]).is_some());
    }
}
