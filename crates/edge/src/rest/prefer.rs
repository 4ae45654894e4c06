//! The `Prefer` header (RFC 7240): a list of preferences over several lines. Malformed and unknown preferences are
//! ignored. The first instance of a preference counts.

use http::{HeaderMap, HeaderName};

const PREFER: HeaderName = HeaderName::from_static("prefer");

/// The supported preferences.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Prefer {
    /// `respond-async`: respond before the work is done.
    pub(super) respond_async: bool,
    /// `wait=N`: wait up to N seconds for a change.
    pub(super) wait_s: Option<u64>,
}

impl Prefer {
    pub(super) fn from_headers(headers: &HeaderMap) -> Self {
        let (mut respond_async, mut wait) = (None, None);
        for line in headers.get_all(PREFER) {
            for preference in split(line.to_str().unwrap_or_default(), ',') {
                let Some((name, value)) = parse_preference(preference) else { continue };
                match name.to_ascii_lowercase().as_str() {
                    "respond-async" => _ = respond_async.get_or_insert(value),
                    "wait" => _ = wait.get_or_insert(value),
                    _ => {}
                }
            }
        }
        let digits = |value: &String| !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
        Self {
            respond_async: respond_async.is_some_and(|value| value.is_empty()),
            wait_s: wait.filter(digits).map(|value| value.parse().unwrap_or(u64::MAX)),
        }
    }
}

/// Name and value of a preference. Parameters are ignored; none are defined for the supported preferences.
fn parse_preference(text: &str) -> Option<(&str, String)> {
    let preference = split(text, ';').next()?;
    let (name, value) = match preference.split_once('=') {
        Some((name, value)) => (name.trim(), parse_value(value.trim())?),
        None => (preference.trim(), String::new()),
    };
    is_token(name).then_some((name, value))
}

/// A token, or the content of a quoted string.
fn parse_value(text: &str) -> Option<String> {
    let Some(quoted) = text.strip_prefix('"') else {
        return is_token(text).then(|| text.to_owned());
    };
    let mut content = String::new();
    let mut characters = quoted.chars();
    loop {
        match characters.next()? {
            '"' => return characters.next().is_none().then_some(content),
            '\\' => content.push(characters.next()?),
            character => content.push(character),
        }
    }
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// Splits at separators outside of quoted strings.
fn split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut quoted, mut escaped) = (false, false);
    text.split(move |character| {
        match character {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ => return character == separator && !quoted,
        }
        false
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn preferences_are_parsed_as_rfc_7240_requires() {
        let many = "x, ".repeat(20_000) + "respond-async, wait=3";
        let deep = format!("wait=\"{}7\"", "\\".repeat(20_000));
        let cases: [(&[&str], bool, Option<u64>); 41] = [
            (&[], false, None),
            (&["respond-async"], true, None),
            (&["Respond-Async"], true, None),
            (&["respond-async, wait=10"], true, Some(10)),
            (&["wait=10, respond-async"], true, Some(10)),
            (&["wait=10", "respond-async"], true, Some(10)),
            (&["handling=lenient; x=\"a, b\", respond-async"], true, None),
            (&["respond-async; foo=\"some value\""], true, None),
            (&["respond-async;"], true, None),
            (&["respond-async=\"\""], true, None),
            (&[" ,, respond-async ,"], true, None),
            (&["foo; respond-async"], false, None),
            (&["foo=\"respond-async\""], false, None),
            (&["foo=\", respond-async, \""], false, None),
            (&["foo=\"\\\", respond-async, \""], false, None),
            (&["foo=\"unclosed, respond-async"], false, None),
            (&["respond-async=false"], false, None),
            (&["respond async"], false, None),
            (&["respond-asynchronously"], false, None),
            (&["foo=bar=baz, respond-async"], true, None),
            (&["wait=5, wait=20"], false, Some(5)),
            (&["wait=x, wait=20"], false, None),
            (&["Wait = \"7\""], false, Some(7)),
            (&["wait=7; x"], false, Some(7)),
            (&["wait"], false, None),
            (&["wait=-1"], false, None),
            (&["wait=99999999999999999999"], false, Some(u64::MAX)),
            (&[""], false, None),
            (&[",", ";", "=", "\""], false, None),
            (&["respond-async, respond-async"], true, None),
            (&["respond-async=no, respond-async"], false, None),
            (&["respond-async", "respond-async=no"], true, None),
            (&["foo=\"unclosed", "respond-async"], true, None),
            (&["wait=\"\\7\""], false, Some(7)),
            (&["wait=\"7\"x"], false, None),
            (&["wait=\"\", wait=7"], false, None),
            (&["wait=00000000000000000000007"], false, Some(7)),
            (&["\"respond-async\""], false, None),
            (&["respond-async\t;\tx"], true, None),
            (&[&many], true, Some(3)),
            (&[&deep], false, None),
        ];
        for (lines, respond_async, wait_s) in cases {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(PREFER, HeaderValue::from_str(line).unwrap());
            }
            assert_eq!(Prefer::from_headers(&headers), Prefer { respond_async, wait_s }, "{lines:?}");
        }
        let opaque = HeaderMap::from_iter([(PREFER, HeaderValue::from_bytes(b"respond-async\xff").unwrap())]);
        assert_eq!(Prefer::from_headers(&opaque), Prefer::default());
    }
}
