//! What a picture is called whose name nobody gave.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use url::Url;

use crate::args::Format;

/// The longest name without its ending, in bytes: file systems take 255 with everything.
const MAX_NAME_BYTES: usize = 120;

/// A path in `directory` for the picture of a page: its host and path, and a number where that is taken in this run.
pub(super) fn unused(directory: &Path, url: &str, format: Format, taken: &mut HashSet<PathBuf>) -> PathBuf {
    let name = name(url);
    let ending = match format {
        Format::Png => "png",
        Format::Jpeg => "jpg",
        Format::Webp => "webp",
    };
    let mut path = directory.join(format!("{name}.{ending}"));
    let mut number = 2;
    while !taken.insert(path.clone()) {
        path = directory.join(format!("{name}-{number}.{ending}"));
        number += 1;
    }
    path
}

/// Host, path and query, in characters that every file system and every shell takes.
fn name(url: &str) -> String {
    let text = match Url::parse(url) {
        Ok(url) => {
            let query = url.query().map(|query| format!("_{query}")).unwrap_or_default();
            format!("{}{}{query}", url.host_str().unwrap_or_default(), url.path().trim_end_matches('/'))
        }
        Err(_) => url.to_owned(),
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    let mut name: String = text.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    name.truncate(MAX_NAME_BYTES);
    // A name that begins with a dot would be hidden, one with a dash taken for an option.
    let name = name.trim_start_matches(['.', '-', '_']);
    if name.is_empty() { "page".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_from_the_page_and_are_harmless() {
        for (url, expected) in [
            ("https://example.com", "example.com"),
            ("https://example.com/", "example.com"),
            ("https://example.com/a/b.html?x=1&y=2#z", "example.com_a_b.html_x_1_y_2"),
            ("https://example.com/../../etc/passwd", "example.com_etc_passwd"),
            ("https://münchen.example/ü", "xn--mnchen-3ya.example__C3_BC"),
            ("http://[::1]:80/", "1_"),
            ("-rf", "rf"),
            ("/", "page"),
        ] {
            assert_eq!(name(url), expected, "{url}");
        }
        assert_eq!(name(&format!("https://example.com/{}", "a".repeat(500))).len(), MAX_NAME_BYTES);
    }
}
