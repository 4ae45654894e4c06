//! Properties of the parsers that must hold for every input. The fuzzer searches for counterexamples, and the tests
//! replay the inputs in `fuzz/corpus`.
//!
//! Properties do not use the code under test as their own reference. They panic when violated.

use std::fmt::Debug;

use grabd_options::TABLE;
use grabd_proto::v1::{CaptureOptions, CreateGrabRequest};
use http::{HeaderMap, HeaderValue};
use serde_json::{Map, Value};

use super::create::parse_body;
use super::idempotency_key;
use super::prefer::Prefer;

/// Compares the parsed body with what `serde_json` reads. Each member of the wrong type must be reported exactly once.
/// A body that is rejected as a whole is not an object, has duplicate members, or is nested too deeply.
pub fn create_body(body: &[u8]) {
    let message = parse_body(body);
    // `serde_json` gives this name a special meaning.
    if body.windows(8).any(|name| name == b"RawValue") {
        return;
    }
    let tolerant = serde_json::from_slice::<Value>(body);
    let named: Vec<&str> = message.unparsed.iter().map(|unparsed| unparsed.field.as_str()).collect();
    assert!(message.unparsed.iter().all(|unparsed| unparsed.seen.chars().count() <= 200), "{message:?}");
    if named == ["body"] {
        let seen = &message.unparsed[0].seen;
        if let Ok(Value::Object(_)) = tolerant {
            assert!(seen.starts_with("the member ") || seen.starts_with("JSON nested deeper"), "{seen}");
        }
        let nothing = CreateGrabRequest { unparsed: message.unparsed.clone(), ..CreateGrabRequest::default() };
        assert_eq!(message, nothing);
        return;
    }
    let duplicate = named.iter().enumerate().find(|(at, name)| named[..*at].contains(name));
    // A part of an option has the name of the option first: `steps[0].click`, `pdf.scale`.
    let is_known = |name: &&str| TABLE.iter().any(|option| name.split(['[', '.']).next() == Some(option.name));
    assert!(named.iter().all(is_known) && duplicate.is_none(), "{named:?}");
    match tolerant {
        Ok(Value::Object(members)) => check_members(&message, &members),
        Ok(other) => panic!("{other} is not an object"),
        // Ignored members may contain numbers or lone surrogates that `serde_json::Value` cannot represent.
        Err(error) => {
            let error = error.to_string();
            let is_expected =
                ["number out of range", "surrogate", "hex escape"].iter().any(|text| error.contains(text));
            assert!(is_expected, "{error}");
        }
    }
}

fn check_members(message: &CreateGrabRequest, members: &Map<String, Value>) {
    let options = message.options.clone().expect("an object has options");
    let CaptureOptions { url, width, height, format, full_page, delay_ms, selector, .. } = options;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    check_member(message, members, "url", url.as_ref(), text);
    check_member(message, members, "width", width.as_ref(), integer);
    check_member(message, members, "height", height.as_ref(), integer);
    check_member(message, members, "delay_ms", delay_ms.as_ref(), integer);
    check_member(message, members, "full_page", full_page.as_ref(), Value::as_bool);
    check_member(message, members, "format", format.as_ref(), text);
    if members.get("selector").is_some_and(Value::is_null) {
        assert!(selector.is_none() && !is_unparsed(message, "selector"), "{message:?}");
    } else {
        check_member(message, members, "selector", selector.as_ref(), text);
    }
    if message.unparsed.is_empty() {
        let again = serde_json::to_vec(members).expect("JSON can be written");
        assert_eq!(parse_body(&again), *message);
    }
}

/// Checks that a member has the value that was sent, is reported as unparsed, or was not sent.
fn check_member<T: Debug + PartialEq>(
    message: &CreateGrabRequest,
    members: &Map<String, Value>,
    name: &str,
    read: Option<&T>,
    as_sent: impl Fn(&Value) -> Option<T>,
) {
    let sent = members.get(name);
    let expected = sent.and_then(as_sent);
    assert_eq!(is_unparsed(message, name), sent.is_some() && expected.is_none(), "{name} of {message:?}");
    assert_eq!(read, expected.as_ref(), "{name}");
}

fn is_unparsed(message: &CreateGrabRequest, name: &str) -> bool {
    message.unparsed.iter().any(|unparsed| unparsed.field == name)
}

/// A number without a fraction that is exact as an `f64` and fits into 32 bits.
fn integer(value: &Value) -> Option<i32> {
    let exact = |number: &f64| number.fract() == 0.0 && number.abs() < (1_i64 << 53) as f64;
    let integer = value.as_i64().or_else(|| value.as_f64().filter(exact).map(|number| number as i64));
    i32::try_from(integer?).ok()
}

/// Preferences must not depend on case, on unknown preferences after them, or on repetition. For input without quotes,
/// a simple reference parser must give the same result. The input is the header lines.
pub fn prefer(data: &[u8]) {
    let Some(lines) = lines("prefer", data) else { return };
    let preferences = Prefer::from_headers(&lines);

    let Some(upper_case) = self::lines("prefer", &data.to_ascii_uppercase()) else { return };
    assert_eq!(Prefer::from_headers(&upper_case), preferences, "{lines:?} in upper case");
    let mut more = lines.clone();
    more.append("prefer", HeaderValue::from_static("unknown; respond-async=\", wait=9\", wait"));
    more.extend(lines.clone());
    assert_eq!(Prefer::from_headers(&more), preferences, "{lines:?} twice");

    if let Ok(text) = str::from_utf8(data)
        && text.bytes().all(|byte| byte.is_ascii_graphic() || b" \t\n".contains(&byte))
        && !text.contains(['"', '\\'])
    {
        assert_eq!(preferences, parse_unquoted(text), "{text:?}");
    }
}

fn parse_unquoted(text: &str) -> Prefer {
    let token = |text: &str| {
        !text.is_empty() && !text.contains([' ', '\t', '(', ')', '/', ':', '<', '=', '>', '?', '@', '[', ']', '{', '}'])
    };
    let first = |wanted: &str| {
        let values = text.split([',', '\n']).filter_map(|one| {
            let plain = one.split(';').next().unwrap_or_default();
            let (name, value) = plain.split_once('=').map_or((plain, None), |(name, value)| (name, Some(value.trim())));
            (name.trim().eq_ignore_ascii_case(wanted) && value.is_none_or(token)).then_some(value)
        });
        values.into_iter().next()
    };
    let wait = first("wait").flatten().filter(|value| value.bytes().all(|byte| byte.is_ascii_digit()));
    Prefer {
        respond_async: first("respond-async") == Some(None),
        wait_s: wait.map(|value| value.parse().unwrap_or(u64::MAX)),
    }
}

/// The key must be the content of the only line, without quotes. Several lines or other bytes must be reported as
/// unparsed. The input is the header lines.
pub fn idempotency_key(data: &[u8]) {
    let Some(lines) = lines("idempotency-key", data) else { return };
    let mut rejected = Vec::new();
    let key = idempotency_key::from_headers(&lines, &mut rejected);
    let is_text = |byte: &u8| (0x20..0x7f).contains(byte) || *byte == b'\t';
    if lines.len() == 1 && data.iter().all(is_text) {
        let key = key.expect("a single line of text is a key");
        let quoted = data.len() > 1 && data.starts_with(b"\"") && data.ends_with(b"\"");
        assert_eq!(key.as_bytes(), if quoted { &data[1..data.len() - 1] } else { data });
        assert_eq!(rejected, []);
    } else {
        assert_eq!(key, None);
        assert_eq!(rejected.iter().map(|unparsed| unparsed.field.as_str()).collect::<Vec<_>>(), ["Idempotency-Key"]);
    }
}

/// The lines of one header field, or `None` if they are not valid in HTTP.
fn lines(name: &'static str, data: &[u8]) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    for line in data.split(|byte| *byte == b'\n') {
        headers.append(name, HeaderValue::from_bytes(line).ok()?);
    }
    Some(headers)
}

#[cfg(test)]
#[path = "../../../../fuzz/replay.rs"]
mod replay;

#[cfg(test)]
mod tests {
    use super::replay::replay;

    #[test]
    fn fuzz_corpus_satisfies_the_properties() {
        replay("create_body", super::create_body);
        replay("idempotency_key", super::idempotency_key);
        replay("prefer", super::prefer);
    }
}
