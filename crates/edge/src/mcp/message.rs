//! Parsing of JSON-RPC 2.0 messages. Ids and tokens keep their source text, so that they are returned unchanged.

use rmcp::model::{ErrorCode, ErrorData};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::rest::json::{self, Members};

/// Maximum number of characters of client input that an error message repeats.
const SEEN_CHARS: usize = 80;

/// A parsed message.
#[derive(Debug)]
pub(super) enum Incoming<'a> {
    Request(RpcRequest<'a>),
    Notification {
        method: String,
        params: Members<'a>,
    },
    /// A response. This server sends no requests, so it is unsolicited.
    Response,
}

/// A request.
#[derive(Debug)]
pub(super) struct RpcRequest<'a> {
    pub(super) id: Id,
    pub(super) method: String,
    /// Empty if absent.
    pub(super) params: Members<'a>,
}

/// A string or an integer of any size, as source text.
#[derive(Clone, Debug)]
pub(super) struct Id(Box<RawValue>);

impl Id {
    /// Parses an id.
    pub(super) fn of(value: &RawValue) -> Option<Self> {
        let text = value.get();
        let digits = text.strip_prefix('-').unwrap_or(text);
        let is_integer = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        (is_integer || json::string(value).is_some()).then(|| Self(value.to_owned()))
    }

    /// The source text.
    pub(super) fn as_str(&self) -> &str {
        self.0.get()
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// A body that is not a valid message.
#[derive(Debug)]
pub(super) struct MalformedMessage {
    /// The id of the request, if it could be read.
    pub(super) id: Option<Id>,
    pub(super) error: ErrorData,
}

/// Parses a body with one message.
///
/// # Errors
/// A parse error for malformed JSON, an invalid request for anything else that is not a message, including batches.
pub(super) fn read(body: &[u8]) -> Result<Incoming<'_>, MalformedMessage> {
    let malformed = |id: Option<Id>, code, message| MalformedMessage { id, error: ErrorData::new(code, message, None) };
    let invalid = |message: String| malformed(None, ErrorCode::INVALID_REQUEST, message);
    let mut members = json::object(body).map_err(|seen| match serde_json::from_slice::<&RawValue>(body) {
        Err(_) => malformed(None, ErrorCode::PARSE_ERROR, format!("The body is not JSON: {}.", shorten(&seen))),
        Ok(value) if value.get().starts_with('[') => {
            invalid("Batches are not part of the protocol: send one message.".to_owned())
        }
        Ok(_) => invalid(format!("The body must be one JSON-RPC message; got {}.", shorten(&seen))),
    })?;
    let id = members.get("id").and_then(|id| Id::of(id));
    let invalid = |message: &str| malformed(id.clone(), ErrorCode::INVALID_REQUEST, message.to_owned());
    let version = members.get("jsonrpc").and_then(|value| json::string(value));
    if version.as_deref() != Some("2.0") {
        return Err(invalid("`jsonrpc` must be \"2.0\"."));
    }
    if !members.contains_key("method") && (members.contains_key("result") || members.contains_key("error")) {
        return Ok(Incoming::Response);
    }
    let method = members.get("method").and_then(|value| json::string(value));
    let method = method.ok_or_else(|| invalid("`method` must be a string."))?;
    let params = match members.get("params") {
        None => Members::new(),
        Some(params) => object(params).ok_or_else(|| invalid("`params` must be an object."))?,
    };
    match members.remove("id") {
        None => Ok(Incoming::Notification { method, params }),
        Some(_) => {
            let id = id.clone().ok_or_else(|| invalid("`id` must be a string or an integer."))?;
            Ok(Incoming::Request(RpcRequest { id, method, params }))
        }
    }
}

/// The members of an object inside a parsed body.
pub(super) fn object(value: &RawValue) -> Option<Members<'_>> {
    json::object(value.get().as_bytes()).ok()
}

/// Truncates client input that is repeated in an error message.
pub(super) fn shorten(text: &str) -> &str {
    text.char_indices().nth(SEEN_CHARS).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_classifies_messages_and_rejects_everything_else() {
        let kind = |body: &[u8]| match read(body) {
            Ok(Incoming::Request(message)) => {
                format!("{} {} {}", message.id.as_str(), message.method, message.params.len())
            }
            Ok(Incoming::Notification { method, params }) => format!("{method} {}", params.len()),
            Ok(Incoming::Response) => "response".to_owned(),
            Err(MalformedMessage { id, error }) => match id {
                Some(id) => format!("{} to {}", error.code.0, id.as_str()),
                None => error.code.0.to_string(),
            },
        };
        let deep = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"a","params":{{"a":{}1{}}}}}"#,
            "[".repeat(40),
            "]".repeat(40)
        );
        let endless = format!(r#"{{"jsonrpc":"2.0","id":1,"params":{}"#, "[".repeat(900_000));
        let cases: [(&[u8], &str); 24] = [
            (br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, "1 ping 0"),
            (br#"{"jsonrpc":"2.0","id":"a\"b","method":"ping","params":{"x":1}}"#, "\"a\\\"b\" ping 1"),
            (
                br#"{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"a"}"#,
                "123456789012345678901234567890 a 0",
            ),
            (br#"{"jsonrpc":"2.0","id":-1,"method":"a"}"#, "-1 a 0"),
            (br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, "notifications/initialized 0"),
            (br#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "response"),
            (br#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}"#, "response"),
            (br#"{"jsonrpc":"2.0","id":null,"method":"a"}"#, "-32600"),
            (br#"{"jsonrpc":"2.0","id":1.5,"method":"a"}"#, "-32600"),
            (br#"{"jsonrpc":"2.0","id":1e400,"method":"a"}"#, "-32600"),
            (br#"{"jsonrpc":"2.0","id":{},"method":"a"}"#, "-32600"),
            (br#"{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}"#, "-32600"),
            (br#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":{"y":1,"y":2}}}"#, "-32600"),
            (br#"{"jsonrpc":"2.0","id":1,"method":"a","params":[]}"#, "-32600 to 1"),
            (br#"{"jsonrpc":"2.0","id":1,"method":1}"#, "-32600 to 1"),
            (br#"{"jsonrpc":2.0,"id":1,"method":"a"}"#, "-32600 to 1"),
            (br#"{"id":1,"method":"a"}"#, "-32600 to 1"),
            (br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, "-32600"),
            (b"[]", "-32600"),
            (b"7", "-32600"),
            (b"{", "-32700"),
            (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", "-32700"),
            (deep.as_bytes(), "-32600"),
            (endless.as_bytes(), "-32700"),
        ];
        for (body, expected) in cases {
            assert_eq!(kind(body), expected, "{}", shorten(&String::from_utf8_lossy(body)));
        }
    }

    #[test]
    fn errors_truncate_client_input() {
        let error = read(format!("\"{}\"", "é".repeat(10_000)).as_bytes()).unwrap_err().error;
        assert!(error.message.chars().count() < 160, "{}", error.message);
    }
}
