//! Which header fields travel on: all but those that are about one connection only (RFC 9110 section 7.6.1).
//!
//! The maps are rebuilt, not edited: removing a field from a map moves another into its place, and sites look at the
//! order.

use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue};

/// The fields of a request as a browser without a proxy would have sent them to `host`.
pub(super) fn for_origin(headers: HeaderMap, host: &HeaderValue) -> HeaderMap {
    let mut sent = HeaderMap::with_capacity(headers.len() + 1);
    if !headers.contains_key(HOST) {
        sent.insert(HOST, host.clone());
    }
    each_that_travels(headers, |name, value| {
        if name == HOST {
            // The request line decides, and there is one host only.
            sent.entry(HOST).or_insert_with(|| host.clone());
        } else if name == CONNECTION {
            sent.entry(CONNECTION).or_insert(value);
        } else {
            sent.append(name, value);
        }
    });
    sent
}

/// The fields of a response as the browser is to see them.
pub(super) fn for_browser(headers: HeaderMap) -> HeaderMap {
    let mut seen = HeaderMap::with_capacity(headers.len());
    each_that_travels(headers, |name, value| {
        if name != CONNECTION {
            seen.append(name, value);
        }
    });
    seen
}

/// Hands on what is about the message, and a plain `Connection: keep-alive` in the place of whatever was there about
/// the connection.
fn each_that_travels(headers: HeaderMap, mut hand_on: impl FnMut(HeaderName, HeaderValue)) {
    let named = named_by_connection(&headers);
    // The coding wins over a length beside it, and hyper has decoded it (RFC 9112 section 6.3).
    let chunked = headers.contains_key(TRANSFER_ENCODING);
    let mut measured = false;
    let mut current = None;
    for (name, value) in headers {
        // A further value of the same field comes without its name.
        let Some(name) = name.or_else(|| current.clone()) else { continue };
        current = Some(name.clone());
        if name == CONNECTION || name == "proxy-connection" {
            hand_on(CONNECTION, HeaderValue::from_static("keep-alive"));
        } else if name == CONTENT_LENGTH {
            // Said twice it is the same length, or hyper would have refused the message.
            if !chunked && !measured {
                hand_on(name, value);
            }
            measured = true;
        } else if !is_hop_by_hop(&name) && !named.contains(&name) {
            hand_on(name, value);
        }
    }
}

fn is_hop_by_hop(name: &HeaderName) -> bool {
    matches!(name.as_str(), "keep-alive" | "te" | "trailer" | "transfer-encoding" | "upgrade")
        || name.as_str().starts_with("proxy-")
}

fn named_by_connection(headers: &HeaderMap) -> Vec<HeaderName> {
    let values = headers.get_all(CONNECTION).into_iter().chain(headers.get_all("proxy-connection"));
    let words = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    let names = words.filter_map(|word| HeaderName::from_bytes(word.trim_ascii()).ok());
    // The length frames the body and the host is whose it is, whoever names them.
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
    fn a_request_keeps_its_order_and_loses_what_was_for_the_proxy() {
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
    fn what_a_connection_names_goes_but_for_host_and_length() {
        let mut given = map(&[("host", "a.example"), ("content-length", "3"), ("x-hop", "1"), ("x-stays", "2")]);
        given.insert(CONNECTION, HeaderValue::from_bytes(b"host, content-length,\tX-Hop ,\xff,").unwrap());
        let mut sent = for_origin(given, &HeaderValue::from_static("site.example"));
        assert_eq!(sent.remove(CONNECTION), Some(HeaderValue::from_static("keep-alive")));
        assert_eq!(list(&sent), [("host", "site.example"), ("content-length", "3"), ("x-stays", "2")]);
    }

    #[test]
    fn a_request_without_a_host_gets_one_at_its_head() {
        let sent = for_origin(map(&[("accept", "*/*")]), &HeaderValue::from_static("site.example"));
        assert_eq!(list(&sent), [("host", "site.example"), ("accept", "*/*")]);
    }

    #[test]
    fn a_response_keeps_every_value_of_a_field() {
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
