//! What holds of every input, whoever sent it. The fuzzer looks for one that breaks a property, and the tests replay what
//! it kept in `fuzz/corpus`.
//!
//! Every property is formulated without the code that it is about. It panics when it is broken.

use std::fmt::Debug;

use grabd_proto::v1::{CreateGrabRequest, ImageFormat};
use http::{HeaderMap, HeaderValue};
use serde_json::{Map, Value};

use super::create::message_of;
use super::idempotency_key;
use super::prefer::Prefer;

/// The members of a create that are read.
const MEMBERS: [&str; 7] = ["url", "width", "height", "format", "full_page", "delay_ms", "selector"];

/// A body becomes what a tolerant reader of JSON finds in it, and each member of another type is named, once. A body that
/// is refused whole was no object, or has something in it that such a reader would let pass.
pub fn create_body(body: &[u8]) {
    let message = message_of(body);
    // A name that means something of its own to the reader that is compared with.
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
    let twice = named.iter().enumerate().find(|(at, name)| named[..*at].contains(name));
    assert!(named.iter().all(|name| MEMBERS.contains(name)) && twice.is_none(), "{named:?}");
    match tolerant {
        Ok(Value::Object(members)) => is_what_was_sent(&message, &members),
        Ok(other) => panic!("{other} is no object"),
        // Members that nobody reads may hold a number or half a character that fits no type of ours.
        Err(error) => {
            let error = error.to_string();
            let fits_no_type = ["number out of range", "surrogate", "hex escape"].iter().any(|why| error.contains(why));
            assert!(fits_no_type, "{error}");
        }
    }
}

fn is_what_was_sent(message: &CreateGrabRequest, members: &Map<String, Value>) {
    let CreateGrabRequest { url, width, height, format: _, full_page, delay_ms, selector, .. } = message;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    holds(message, members, "url", url.as_ref(), text);
    holds(message, members, "width", width.as_ref(), whole);
    holds(message, members, "height", height.as_ref(), whole);
    holds(message, members, "delay_ms", delay_ms.as_ref(), whole);
    holds(message, members, "full_page", full_page.as_ref(), Value::as_bool);
    let format = Some(message.format()).filter(|format| *format != ImageFormat::Unspecified);
    holds(message, members, "format", format.as_ref(), |value| match value.as_str()? {
        "png" => Some(ImageFormat::Png),
        "jpeg" => Some(ImageFormat::Jpeg),
        "webp" => Some(ImageFormat::Webp),
        _ => None,
    });
    if members.get("selector").is_some_and(Value::is_null) {
        assert!(selector.is_none() && !is_named(message, "selector"), "{message:?}");
    } else {
        holds(message, members, "selector", selector.as_ref(), text);
    }
    if message.unparsed.is_empty() {
        let again = serde_json::to_vec(members).expect("JSON can be written");
        assert_eq!(message_of(&again), *message);
    }
}

/// A member is as it was sent, or named as one of another type, or was not sent.
fn holds<T: Debug + PartialEq>(
    message: &CreateGrabRequest,
    members: &Map<String, Value>,
    name: &str,
    read: Option<&T>,
    as_sent: impl Fn(&Value) -> Option<T>,
) {
    let sent = members.get(name);
    let expected = sent.and_then(as_sent);
    assert_eq!(is_named(message, name), sent.is_some() && expected.is_none(), "{name} of {message:?}");
    assert_eq!(read, expected.as_ref(), "{name}");
}

fn is_named(message: &CreateGrabRequest, name: &str) -> bool {
    message.unparsed.iter().any(|unparsed| unparsed.field == name)
}

/// A number without a fraction, as exact as a double is.
fn whole(value: &Value) -> Option<i64> {
    let exact = |number: &f64| number.fract() == 0.0 && number.abs() < (1_i64 << 53) as f64;
    value.as_i64().or_else(|| value.as_f64().filter(exact).map(|number| number as i64))
}

/// Preferences do not depend on case, on what is unknown behind them, or on how often they are said; without quotes, a
/// much simpler reader finds the same. The input is the lines.
pub fn prefer(data: &[u8]) {
    let Some(lines) = lines("prefer", data) else { return };
    let preferences = Prefer::of(&lines);

    let Some(louder) = self::lines("prefer", &data.to_ascii_uppercase()) else { return };
    assert_eq!(Prefer::of(&louder), preferences, "{lines:?} in upper case");
    let mut more = lines.clone();
    more.append("prefer", HeaderValue::from_static("unknown; respond-async=\", wait=9\", wait"));
    more.extend(lines.clone());
    assert_eq!(Prefer::of(&more), preferences, "{lines:?} twice");

    if let Ok(text) = str::from_utf8(data)
        && text.bytes().all(|byte| byte.is_ascii_graphic() || b" \t\n".contains(&byte))
        && !text.contains(['"', '\\'])
    {
        assert_eq!(preferences, without_quotes(text), "{text:?}");
    }
}

fn without_quotes(text: &str) -> Prefer {
    let token = |text: &str| {
        !text.is_empty() && !text.contains([' ', '\t', '(', ')', '/', ':', '<', '=', '>', '?', '@', '[', ']', '{', '}'])
    };
    let of = |wanted: &str| {
        let said = text.split([',', '\n']).filter_map(|one| {
            let plain = one.split(';').next().unwrap_or_default();
            let (name, value) = plain.split_once('=').map_or((plain, None), |(name, value)| (name, Some(value.trim())));
            (name.trim().eq_ignore_ascii_case(wanted) && value.is_none_or(token)).then_some(value)
        });
        said.into_iter().next()
    };
    let wait = of("wait").flatten().filter(|value| value.bytes().all(|byte| byte.is_ascii_digit()));
    Prefer {
        respond_async: of("respond-async") == Some(None),
        wait_s: wait.map(|value| value.parse().unwrap_or(u64::MAX)),
    }
}

/// A key is the one line, with or without its quotes; any other number of lines, or other bytes, are named. The input is
/// the lines.
pub fn idempotency_key(data: &[u8]) {
    let Some(lines) = lines("idempotency-key", data) else { return };
    let mut refused = Vec::new();
    let key = idempotency_key::of(&lines, &mut refused);
    let is_text = |byte: &u8| (0x20..0x7f).contains(byte) || *byte == b'\t';
    if lines.len() == 1 && data.iter().all(is_text) {
        let key = key.expect("one line of text is a key");
        let quoted = data.len() > 1 && data.starts_with(b"\"") && data.ends_with(b"\"");
        assert_eq!(key.as_bytes(), if quoted { &data[1..data.len() - 1] } else { data });
        assert_eq!(refused, []);
    } else {
        assert_eq!(key, None);
        assert_eq!(refused.iter().map(|unparsed| unparsed.field.as_str()).collect::<Vec<_>>(), ["Idempotency-Key"]);
    }
}

/// The lines of one header field, if they can be some.
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
    fn the_corpus_keeps_them() {
        replay("create_body", super::create_body);
        replay("idempotency_key", super::idempotency_key);
        replay("prefer", super::prefer);
    }
}
