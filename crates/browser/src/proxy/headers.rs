//! Selects the header fields to forward: all except hop-by-hop fields (RFC 9110 section 7.6.1).
//!
//! The maps are rebuilt, not edited: removing a field moves another into its place, and sites look at the order.

use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue};

/// The fields of a request to `host`, as a browser without a proxy would have sent them.
pub(super) fn for_origin(headers: HeaderMap, host: &HeaderValue) -> HeaderMap {
    let mut sent = HeaderMap::with_capacity(headers.len() + 1);
    if !headers.contains_key(HOST) {
        sent.insert(HOST, host.clone());
    }
    for_each_end_to_end(headers, |name, value| {
        if name == HOST {
            // The request line takes precedence, and there is only one Host field.
            sent.entry(HOST).or_insert_with(|| host.clone());
        } else if name == CONNECTION {
            sent.entry(CONNECTION).or_insert(value);
        } else {
            sent.append(name, value);
        }
    });
    sent
}

/// The fields of a response to the browser.
pub(super) fn for_browser(headers: HeaderMap) -> HeaderMap {
    let mut forwarded = HeaderMap::with_capacity(headers.len());
    for_each_end_to_end(headers, |name, value| {
        if name != CONNECTION {
            forwarded.append(name, value);
        }
    });
    forwarded
}

/// Calls `emit` for each end-to-end field, and with `Connection: keep-alive` in place of the connection fields.
fn for_each_end_to_end(headers: HeaderMap, mut emit: impl FnMut(HeaderName, HeaderValue)) {
    let named = named_by_connection(&headers);
    // Transfer-Encoding overrides Content-Length, and hyper has decoded it (RFC 9112 section 6.3).
    let chunked = headers.contains_key(TRANSFER_ENCODING);
    let mut has_length = false;
    let mut current = None;
    for (name, value) in headers {
        // Further values of a field come without its name.
        let Some(name) = name.or_else(|| current.clone()) else { continue };
        current = Some(name.clone());
        if name == CONNECTION || name == "proxy-connection" {
            emit(CONNECTION, HeaderValue::from_static("keep-alive"));
        } else if name == CONTENT_LENGTH {
            // Repeated lengths are equal, or hyper would have rejected the message.
            if !chunked && !has_length {
                emit(name, value);
            }
            has_length = true;
        } else if !is_hop_by_hop(&name) && !named.contains(&name) {
            emit(name, value);
        }
    }
}

fn is_hop_by_hop(name: &HeaderName) -> bool {
    matches!(name.as_str(), "keep-alive" | "te" | "trailer" | "transfer-encoding" | "upgrade")
        || name.as_str().starts_with("proxy-")
}

fn named_by_connection(headers: &HeaderMap) -> Vec<HeaderName> {
    let values = headers.get_all(CONNECTION).into_iter().chain(headers.get_all("proxy-connection"));
    let options = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    let names = options.filter_map(|option| HeaderName::from_bytes(option.trim_ascii()).ok());
    // Content-Length frames the body and Host identifies the site, even if Connection names them.
    names.filter(|name| *name != CONTENT_LENGTH && *name != HOST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        fields.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    fn list(headers: &HeaderMap) -> Vec<(&str, &str)> {
        headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect()
    }

    #[test]
    fn request_fields_keep_their_order_without_hop_by_hop_fields() {
        let given = map(&[
            ("host", "other.example"),
            ("proxy-connection", "keep-alive"),
            ("x-first", "1"),
            ("connection", "x-secret, close"),
            ("x-secret", "2"),
            ("proxy-authorization", "Basic eA=="),
            ("te", "trailers"),
            ("upgrade", "websocket"),
            ("keep-alive", "5"),
            ("transfer-encoding", "chunked"),
            ("trailer", "x"),
            ("content-length", "5"),
            ("cookie", "a"),
            ("host", "third.example"),
            ("x-last", "3"),
        ]);
        assert_eq!(
            list(&for_origin(given, &HeaderValue::from_static("site.example"))),
            [
                ("host", "site.example"),
                ("connection", "keep-alive"),
                ("x-first", "1"),
                ("cookie", "a"),
                ("x-last", "3")
            ]
        );
    }

    #[test]
    fn fields_named_by_connection_are_removed_except_host_and_length() {
        let mut given = map(&[("host", "a.example"), ("content-length", "3"), ("x-hop", "1"), ("x-stays", "2")]);
        given.insert(CONNECTION, HeaderValue::from_bytes(b"host, content-length,\tX-Hop ,\xff,").unwrap());
        let mut sent = for_origin(given, &HeaderValue::from_static("site.example"));
        assert_eq!(sent.remove(CONNECTION), Some(HeaderValue::from_static("keep-alive")));
        assert_eq!(list(&sent), [("host", "site.example"), ("content-length", "3"), ("x-stays", "2")]);
    }

    #[test]
    fn request_without_host_gets_one_as_first_field() {
        let sent = for_origin(map(&[("accept", "*/*")]), &HeaderValue::from_static("site.example"));
        assert_eq!(list(&sent), [("host", "site.example"), ("accept", "*/*")]);
    }

    #[test]
    fn response_keeps_every_value_of_a_field() {
        let given = map(&[
            ("set-cookie", "a"),
            ("connection", "close, x-hop"),
            ("set-cookie", "b"),
            ("x-hop", "1"),
            ("proxy-authenticate", "Basic"),
            ("content-length", "3"),
            ("content-length", "3"),
        ]);
        assert_eq!(list(&for_browser(given)), [("set-cookie", "a"), ("set-cookie", "b"), ("content-length", "3")]);
    }
}
