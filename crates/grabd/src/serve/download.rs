//! `?download=name` of an image's address: the image is saved under a name instead of being shown.

use std::fmt::Write as _;

use axum::http::HeaderValue;
use grabd_domain::capture::Format;
use url::form_urlencoded;

/// The most characters of a name, its extension included.
const NAME_CHARS: usize = 100;
/// The name if nothing is left of the requested one.
const DEFAULT_NAME: &str = "image";
/// Characters that have a meaning in paths or in shells of some system.
const REFUSED: &[char] = &['/', '\\', ':', '*', '?', '"', '<', '>', '|', '%'];

/// The value of `Content-Disposition`. None if the query does not ask for a download.
pub(super) fn disposition(query: &str, format: Format) -> Option<HeaderValue> {
    let (_, name) = form_urlencoded::parse(query.as_bytes()).find(|(member, _)| member == "download")?;
    HeaderValue::try_from(attachment(&file_name(&name, format))).ok()
}

/// A name that is safe on all systems, with the extension of the format.
fn file_name(requested: &str, format: Format) -> String {
    let extensions: &[&str] = match format {
        Format::Png => &["png"],
        Format::Jpeg => &["jpeg", "jpg"],
        Format::Webp => &["webp"],
    };
    let is_safe = |char: &char| !char.is_control() && !is_invisible(*char) && !REFUSED.contains(char);
    let name: String = requested.chars().take(4 * NAME_CHARS).filter(is_safe).collect();
    // Names with a dot at the beginning are hidden, and Windows removes dots and spaces at the end.
    let name = name.trim_matches(|char: char| char == '.' || char.is_whitespace());
    let (stem, extension) = match name.rsplit_once('.') {
        Some((stem, extension)) if extensions.iter().any(|known| extension.eq_ignore_ascii_case(known)) => {
            (stem, extension)
        }
        Some(_) | None => (name, format.as_str()),
    };
    let stem: String = stem.chars().take(NAME_CHARS - extension.len() - 1).collect();
    let stem = stem.trim_end_matches(|char: char| char == '.' || char.is_whitespace());
    format!("{}.{extension}", if stem.is_empty() { DEFAULT_NAME } else { stem })
}

/// Marks of the direction of text, which can make a name look like one with another extension, and others without
/// width.
const fn is_invisible(char: char) -> bool {
    matches!(char, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// The header value (RFC 6266): names that are not ASCII are also given encoded (RFC 8187).
fn attachment(name: &str) -> String {
    let plain: String = name.chars().map(|char| if char.is_ascii() { char } else { '_' }).collect();
    let mut value = format!("attachment; filename=\"{plain}\"");
    if plain != name {
        value.push_str("; filename*=UTF-8''");
        for byte in name.bytes() {
            if byte.is_ascii_alphanumeric() || b"!#$&+-.^_`|~".contains(&byte) {
                value.push(char::from(byte));
            } else {
                _ = write!(value, "%{byte:02X}");
            }
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_and_have_the_extension_of_the_format() {
        for (requested, format, expected) in [
            ("page", Format::Png, "page.png"),
            ("page.png", Format::Png, "page.png"),
            ("page.PNG", Format::Png, "page.PNG"),
            ("page.png", Format::Webp, "page.png.webp"),
            ("page.jpg", Format::Jpeg, "page.jpg"),
            ("page.exe", Format::Jpeg, "page.exe.jpeg"),
            ("../../etc/passwd", Format::Png, "etcpasswd.png"),
            ("C:\\a\\b", Format::Png, "Cab.png"),
            ("a\"; filename=b.exe", Format::Png, "a; filename=b.exe.png"),
            ("a\r\nX: y", Format::Png, "aX y.png"),
            ("a\u{202e}gnp.exe", Format::Png, "agnp.exe.png"),
            ("", Format::Png, "image.png"),
            ("...", Format::Png, "image.png"),
            (" .png", Format::Png, "png.png"),
            ("a. ", Format::Png, "a.png"),
            ("größe", Format::Png, "größe.png"),
        ] {
            assert_eq!(file_name(requested, format), expected, "{requested:?}");
        }
    }

    #[test]
    fn long_names_are_cut_before_the_extension() {
        for (requested, format) in
            [("ä".repeat(1000), Format::Webp), (format!("{}.jpeg", "a".repeat(200)), Format::Jpeg)]
        {
            let name = file_name(&requested, format);
            assert_eq!(name.chars().count(), NAME_CHARS);
            assert!(name.ends_with(&format!(".{}", format.as_str())), "{name}");
        }
    }

    #[test]
    fn disposition_is_an_attachment_with_an_encoded_name_if_needed() {
        let of = |query: &str| disposition(query, Format::Png).map(|value| value.to_str().unwrap().to_owned());
        assert_eq!(of("download=my+page"), Some("attachment; filename=\"my page.png\"".to_owned()));
        assert_eq!(of("x=1&download"), Some("attachment; filename=\"image.png\"".to_owned()));
        let encoded = "attachment; filename=\"gr__e 1.png\"; filename*=UTF-8''gr%C3%B6%C3%9Fe%201.png";
        assert_eq!(of("download=gr%C3%B6%C3%9Fe%201"), Some(encoded.to_owned()));
        assert_eq!(of(""), None);
        assert_eq!(of("downloads=a"), None);
    }
}
