//! Default file names of images.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use url::Url;

use crate::args::Format;

/// The longest name without its extension, in bytes. File systems limit a complete name to 255 bytes.
const MAX_NAME_BYTES: usize = 120;

/// A path in `directory`, named after the page's host and path. A number is appended if this run already uses the name.
pub(crate) fn unique_path(directory: &Path, url: &str, format: Format, taken: &mut HashSet<PathBuf>) -> PathBuf {
    let name = name(url);
    let extension = match format {
        Format::Png => "png",
        Format::Jpeg => "jpg",
        Format::Webp => "webp",
    };
    let mut path = directory.join(format!("{name}.{extension}"));
    let mut number = 2;
    while !taken.insert(path.clone()) {
        path = directory.join(format!("{name}-{number}.{extension}"));
        number += 1;
    }
    path
}

/// The path of a slice of an image, beside it. Slices are numbered from 1.
pub(super) fn slice_path(image: &Path, number: usize) -> PathBuf {
    beside_path(image, &format!("{number:02}"))
}

/// The path of an image beside another one, with this at the end of its name.
pub(super) fn beside_path(image: &Path, ending: &str) -> PathBuf {
    let mut name = image.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{ending}"));
    if let Some(extension) = image.extension() {
        name.push(".");
        name.push(extension);
    }
    image.with_file_name(name)
}

/// Whether a step may give an image this name: the service accepts no other ones, and a path is made of it.
pub(super) fn is_image_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
}

/// Host, path and query, reduced to characters that are safe in file systems and shells.
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
    // A leading dot would hide the file, and a leading dash would make the name look like an option.
    let name = name.trim_start_matches(['.', '-', '_']);
    if name.is_empty() { "page".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_numbered_before_the_extension() {
        let name = |image: &str, number| slice_path(Path::new(image), number).display().to_string();
        assert_eq!(name("out/page.png", 1), "out/page-01.png");
        assert_eq!(name("a.example.jpg", 64), "a.example-64.jpg");
        assert_eq!(name("page", 2), "page-02");
        assert_eq!(beside_path(Path::new("out/page.png"), "390x844"), Path::new("out/page-390x844.png"));
        assert!(is_image_name("menu-2_b"));
        for name in ["", "2", "-a", "a/b", "..", "a.png", "ä"] {
            assert!(!is_image_name(name), "{name}");
        }
    }

    #[test]
    fn names_derive_from_the_url_and_are_safe() {
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
