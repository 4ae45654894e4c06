//! Line breaks in URLs.

use std::convert::Infallible;

use askama::filters::{Html, Safe, escape};

/// Characters after which a line of a URL may break.
const SEPARATORS: [char; 6] = ['/', '?', '&', '=', '-', '_'];

/// The HTML of a URL whose lines break after separators, so that they need not break within words:
/// `https://<wbr>example.com/<wbr>help`.
pub(crate) fn with_line_breaks(url: &str) -> Safe<String> {
    let escaped = parts(url).map(|part| {
        let Ok(escaped): Result<_, Infallible> = escape(part, Html);
        escaped.to_string()
    });
    Safe(escaped.collect::<Vec<_>>().join("<wbr>"))
}

/// The parts of a URL. Each but the last ends with one or more separators.
fn parts(url: &str) -> impl Iterator<Item = &str> {
    let mut rest = url;
    std::iter::from_fn(move || {
        let word = rest.find(SEPARATORS).unwrap_or(rest.len());
        let separators = rest[word..].find(|next| !SEPARATORS.contains(&next)).unwrap_or(rest.len() - word);
        let part;
        (part, rest) = rest.split_at(word + separators);
        (!part.is_empty()).then_some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_urls_break_after_separators() {
        for (url, html) in [
            ("", ""),
            ("200", "200"),
            ("example.com", "example.com"),
            ("https://example.com/a/", "https://<wbr>example.com/<wbr>a/"),
            ("/a-b?c=<d>&e=é", "/<wbr>a-<wbr>b?<wbr>c=<wbr>&#60;d&#62;&#38;<wbr>e=<wbr>é"),
        ] {
            assert_eq!(with_line_breaks(url).0, html, "{url}");
        }
    }
}
