//! The two eras of the protocol. In the modern one, from 2026-07-28 on, there is no handshake: every request has its
//! protocol metadata in `_meta` and in headers. The legacy one begins with `initialize` and has the version in a
//! header.

use std::borrow::Cow;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::header::ACCEPT;
use http::{HeaderMap, HeaderName};
use rmcp::model::{ErrorCode, ErrorData, ProtocolVersion, RequestMetaObject};
use serde_json::json;

use super::message::{RpcRequest, object, shorten};
use crate::rest::json::{self, Members};

/// Supported protocol versions, newest first.
pub(super) const SUPPORTED_VERSIONS: [ProtocolVersion; 4] = [
    ProtocolVersion::V_2026_07_28,
    ProtocolVersion::V_2025_11_25,
    ProtocolVersion::V_2025_06_18,
    ProtocolVersion::V_2025_03_26,
];

const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const META_VERSION: &str = RequestMetaObject::DRAFT_REQUIRED_KEYS[0];

/// Protocol era of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Era {
    Modern,
    Legacy,
}

impl Era {
    /// The era according to the headers.
    pub(super) fn of_headers(headers: &HeaderMap) -> Self {
        // Versions are dates, so later ones compare as greater.
        match header_value(headers, &VERSION) {
            Ok(Some(version)) if *version < *ProtocolVersion::NO_INITIALIZE.as_str() => Self::Legacy,
            Ok(Some(_)) => Self::Modern,
            Ok(None) | Err(_) => Self::Legacy,
        }
    }

    /// The era of a request. It is modern if the header or `_meta` is.
    pub(super) fn of(headers: &HeaderMap, message: &RpcRequest<'_>) -> Self {
        match meta(message).is_some_and(|meta| meta.contains_key(META_VERSION)) {
            true => Self::Modern,
            false => Self::of_headers(headers),
        }
    }

    /// Checks the protocol metadata of a request.
    ///
    /// # Errors
    /// With the first violation.
    pub(super) fn check(self, headers: &HeaderMap, message: &RpcRequest<'_>) -> Result<(), ErrorData> {
        match self {
            Self::Modern => check_modern(headers, message),
            // The version is negotiated by this request.
            Self::Legacy if message.method == "initialize" => Ok(()),
            Self::Legacy => match header_value(headers, &VERSION).map_err(mismatch)? {
                Some(version) => check_version(&version),
                None => Ok(()),
            },
        }
    }
}

fn check_modern(headers: &HeaderMap, message: &RpcRequest<'_>) -> Result<(), ErrorData> {
    let known = meta(message).and_then(|meta| {
        let members = meta.iter().map(|(name, value)| Some((name.clone(), serde_json::from_str(value.get()).ok()?)));
        members.collect::<Option<serde_json::Map<_, _>>>()
    });
    let known = RequestMetaObject::from(known.unwrap_or_default());
    let missing = known.missing_required_keys(&ProtocolVersion::NO_INITIALIZE);
    if !missing.is_empty() {
        let message = format!("Invalid params: `_meta` must have {}.", missing.join(" and "));
        return Err(ErrorData::invalid_params(message, None));
    }
    let version = known.protocol_version().map(|version| version.to_string()).unwrap_or_default();
    check_header(headers, &VERSION, &version)?;
    check_header(headers, &METHOD, &message.method)?;
    let named_by = match message.method.as_str() {
        "tools/call" => Some("name"),
        "resources/read" => Some("uri"),
        _ => None,
    };
    let name = named_by.and_then(|member| json::string(message.params.get(member)?));
    if let Some(name) = name {
        check_header(headers, &NAME, &name)?;
    }
    check_version(&version)
}

fn check_version(version: &str) -> Result<(), ErrorData> {
    if SUPPORTED_VERSIONS.iter().any(|supported| supported.as_str() == version) {
        return Ok(());
    }
    let data = json!({ "requested": shorten(version), "supported": SUPPORTED_VERSIONS });
    Err(ErrorData::new(ErrorCode::UNSUPPORTED_PROTOCOL_VERSION, "Unsupported protocol version.", Some(data)))
}

/// Header and body must agree, because proxies read the header and this server reads the body.
fn check_header(headers: &HeaderMap, name: &HeaderName, body: &str) -> Result<(), ErrorData> {
    match header_value(headers, name).map_err(mismatch)? {
        Some(value) if value == body => Ok(()),
        Some(value) => {
            let (value, body) = (shorten(&value), shorten(body));
            Err(mismatch(format!("Header {name} is {value:?}, but the body has {body:?}.")))
        }
        None => Err(mismatch(format!("Header {name} is missing; the body has {:?}.", shorten(body)))),
    }
}

fn mismatch(message: String) -> ErrorData {
    ErrorData::header_mismatch(message, None)
}

/// The value of a header that may occur once, trimmed and decoded from Base64 if encoded.
fn header_value<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<Cow<'a, str>>, String> {
    let mut lines = headers.get_all(name).iter();
    let (line, None) = (lines.next(), lines.next()) else { return Err(format!("Header {name} is repeated.")) };
    let Some(line) = line else { return Ok(None) };
    let text = line.to_str().map_err(|_| format!("Header {name} is not visible ASCII."))?.trim_matches([' ', '\t']);
    let Some(encoded) = text.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) else {
        return Ok(Some(Cow::Borrowed(text)));
    };
    let decoded = BASE64_STANDARD.decode(encoded).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    decoded.map(|text| Some(Cow::Owned(text))).ok_or_else(|| format!("Header {name} is not Base64 of UTF-8 text."))
}

fn meta<'a>(message: &RpcRequest<'a>) -> Option<Members<'a>> {
    object(message.params.get("_meta")?)
}

/// Whether the client accepts a media type. Without an `Accept` header it accepts all.
pub(super) fn accepts(headers: &HeaderMap, media_type: &str) -> bool {
    let (kind, _) = media_type.split_once('/').unwrap_or((media_type, ""));
    let lines: Vec<&str> = headers.get_all(ACCEPT).iter().filter_map(|line| line.to_str().ok()).collect();
    lines.is_empty()
        || lines.iter().flat_map(|line| line.split(',')).any(|range| {
            let mut parts = range.split(';').map(str::trim);
            let named = parts.next().unwrap_or_default().to_ascii_lowercase();
            let matches = named == media_type || named == "*/*" || named.strip_suffix("/*") == Some(kind);
            let excluded = parts.any(|part| {
                let (name, weight) = part.split_once('=').unwrap_or((part, ""));
                name.trim().eq_ignore_ascii_case("q") && weight.trim().parse::<f32>().is_ok_and(|weight| weight <= 0.0)
            });
            matches && !excluded
        })
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::super::message::{Incoming, read};
    use super::*;

    const META: &str =
        r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

    fn headers(lines: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(HeaderName::try_from(*name).unwrap(), HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    /// The era and the error code, 0 for none.
    fn check(lines: &[(&str, &str)], method: &str, params: &str) -> (Era, i32) {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        let Ok(Incoming::Request(message)) = read(body.as_bytes()) else { panic!("not a request: {body}") };
        let headers = headers(lines);
        let era = Era::of(&headers, &message);
        (era, era.check(&headers, &message).err().map_or(0, |error| error.code.0))
    }

    #[test]
    fn modern_requests_must_agree_in_header_and_body() {
        let list = format!("{{\"_meta\":{META}}}");
        let call = format!("{{\"name\":\"get_usage\",\"_meta\":{META}}}");
        let read = format!("{{\"uri\":\"grab://a/b\",\"_meta\":{META}}}");
        let version = ("MCP-Protocol-Version", "2026-07-28");
        let unknown = list.replace("2026-07-28", "2027-01-01");
        let base64 = BASE64_STANDARD.encode("get_usage");
        let base64 = format!("=?base64?{base64}?=");
        type Case<'a> = (Vec<(&'a str, &'a str)>, &'a str, &'a str, i32);
        let cases: Vec<Case<'_>> = vec![
            (vec![version, ("Mcp-Method", "tools/list")], "tools/list", &list, 0),
            (vec![("mcp-protocol-version", " 2026-07-28\t"), ("MCP-METHOD", "  tools/list ")], "tools/list", &list, 0),
            (vec![version, ("Mcp-Method", "tools/call"), ("Mcp-Name", &base64)], "tools/call", &call, 0),
            (vec![version, ("Mcp-Method", "tools/call"), ("Mcp-Name", "get_usage")], "tools/call", &call, 0),
            (vec![version, ("Mcp-Method", "tools/call"), ("Mcp-Name", "GET_USAGE")], "tools/call", &call, -32020),
            (vec![version, ("Mcp-Method", "tools/call"), ("Mcp-Name", "=?base64?*?=")], "tools/call", &call, -32020),
            (vec![version, ("Mcp-Method", "tools/call")], "tools/call", &call, -32020),
            (vec![version, ("Mcp-Method", "TOOLS/LIST")], "tools/list", &list, -32020),
            (vec![version], "tools/list", &list, -32020),
            (vec![version, ("Mcp-Method", "resources/read"), ("Mcp-Name", "grab://a/b")], "resources/read", &read, 0),
            (
                vec![version, ("Mcp-Method", "resources/read"), ("Mcp-Name", "grab://a/c")],
                "resources/read",
                &read,
                -32020,
            ),
            (vec![version, version, ("Mcp-Method", "tools/list")], "tools/list", &list, -32020),
            (vec![("Mcp-Method", "tools/list")], "tools/list", &list, -32020),
            (vec![("MCP-Protocol-Version", "2025-11-25"), ("Mcp-Method", "tools/list")], "tools/list", &list, -32020),
            (vec![version, ("Mcp-Method", "tools/list")], "tools/list", &unknown, -32020),
            (
                vec![("MCP-Protocol-Version", "2027-01-01"), ("Mcp-Method", "tools/list")],
                "tools/list",
                &unknown,
                -32022,
            ),
            (vec![version, ("Mcp-Method", "tools/list")], "tools/list", "{}", -32602),
            (vec![version, ("Mcp-Method", "tools/list")], "tools/list", r#"{"_meta":7}"#, -32602),
        ];
        for (lines, method, params, code) in cases {
            assert_eq!(check(&lines, method, params), (Era::Modern, code), "{lines:?} {params}");
        }
        for missing in [
            r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#,
            r#"{"_meta":{"io.modelcontextprotocol/clientCapabilities":{}}}"#,
            r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":1,"io.modelcontextprotocol/clientCapabilities":{}}}"#,
            r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":null}}"#,
        ] {
            let result = check(&[version, ("Mcp-Method", "tools/list")], "tools/list", missing);
            assert_eq!(result, (Era::Modern, -32602), "{missing}");
        }
    }

    #[test]
    fn requests_without_modern_metadata_are_legacy() {
        for (lines, code) in [
            (vec![], 0),
            (vec![("MCP-Protocol-Version", "2025-03-26")], 0),
            (vec![("MCP-Protocol-Version", "2025-06-18")], 0),
            (vec![("MCP-Protocol-Version", "2025-11-25")], 0),
            (vec![("MCP-Protocol-Version", "2024-11-05")], -32022),
            (vec![("MCP-Protocol-Version", "2025-11-25"), ("MCP-Protocol-Version", "2025-11-25")], -32020),
        ] {
            assert_eq!(check(&lines, "tools/list", "{}"), (Era::Legacy, code), "{lines:?}");
        }
        assert_eq!(check(&[("MCP-Protocol-Version", "2024-11-05")], "initialize", "{}"), (Era::Legacy, 0));
    }

    #[test]
    fn accept_header_is_matched_with_wildcards_and_weights() {
        for (accept, json, stream) in [
            ("application/json, text/event-stream", true, true),
            ("Application/JSON;q=0.5", true, false),
            ("text/event-stream", false, true),
            ("*/*", true, true),
            ("application/*, text/event-stream;q=0", true, false),
            ("text/html", false, false),
        ] {
            let headers = headers(&[("accept", accept)]);
            assert_eq!((accepts(&headers, "application/json"), accepts(&headers, "text/event-stream")), (json, stream));
        }
        assert!(accepts(&HeaderMap::new(), "application/json"));
    }
}
