//! Properties of every request to the proxy. The fuzzer searches for violations, and the tests replay its corpus in
//! `fuzz/corpus`. A violated property panics.

use std::convert::Infallible;
use std::net::IpAddr;

use bytes::Bytes;
use grabd_domain::target::TargetHost;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Empty;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;

use super::connection::server_builder;
use super::headers::{for_browser, for_origin};
use super::listener_limits::Limits;
use super::target::{Destination, Target, parse_host, target};

/// Hop-by-hop fields (RFC 9110 section 7.6.1), in addition to those that begin with `proxy-`.
const HOP_BY_HOP: [&str; 6] = ["connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"];

/// Every request of a connection has one destination host and port, and loses exactly its hop-by-hop fields. The input
/// is what the browser sends.
pub fn proxy(data: &[u8]) {
    let service = service_fn(|request| async move {
        check_request(&request);
        // An error response, so that data after a CONNECT is also parsed as a request.
        let mut response = Response::new(Empty::<Bytes>::new());
        *response.status_mut() = StatusCode::FORBIDDEN;
        Ok::<_, Infallible>(response)
    });
    let mut server_builder = server_builder(Limits::default().header_bytes);
    // The input ends before any response, which must not count as a disconnect.
    server_builder.half_close(true);
    let stream = tokio::io::join(data, tokio::io::sink());
    let connection = server_builder.serve_connection(TokioIo::new(stream), service);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("the runtime can be built");
    // Invalid requests end the connection, which is a valid outcome.
    drop(runtime.block_on(connection));
}

/// Checks one request, if it has a valid target.
fn check_request<B>(request: &Request<B>) {
    let headers = request.headers();
    let authority = request.uri().authority().map_or("", |authority| authority.as_str());
    let port = authority.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')).map_or("", |(_, port)| port);
    assert_eq!(fields(&for_browser(headers.clone())), end_to_end(headers), "{headers:?}");
    let Ok(parsed) = target(request.method(), request.uri()) else { return };
    assert!(port.bytes().all(|byte| byte.is_ascii_digit()), "{authority}");
    match parsed {
        Target::Tunnel(destination) => {
            assert_eq!(request.method(), Method::CONNECT);
            check_destination(&destination);
        }
        Target::Plain(destination, authority, path) => {
            check_destination(&destination);
            assert!(path.to_string().starts_with(['/', '*']), "{path:?}");
            // The origin must see the host that the guard has checked.
            let get = format!("http://{authority}/").parse().expect("an authority is valid in a URI");
            let Ok(Target::Plain(again, _, _)) = target(&Method::GET, &get) else {
                panic!("{authority} has no destination")
            };
            assert_eq!(again, destination);

            let host = HeaderValue::from_str(authority.as_str()).expect("an authority is visible ASCII");
            let sent = for_origin(headers.clone(), &host);
            assert_eq!(sent.get_all("host").iter().collect::<Vec<_>>(), [&host], "{headers:?}");
            let connection: Vec<_> = sent.get_all("connection").iter().collect();
            assert!(connection.is_empty() || connection == ["keep-alive"], "{headers:?}");
            let mut rest = fields(&sent);
            rest.retain(|(name, _)| *name != "host" && *name != "connection");
            let mut expected = end_to_end(headers);
            expected.retain(|(name, _)| *name != "host");
            assert_eq!(rest, expected, "{headers:?}");
        }
    }
}

fn check_destination(destination: &Destination) {
    let Destination { host, port } = destination;
    assert_ne!(*port, 0, "{host}");
    assert_eq!(parse_host(&host.to_string()).as_ref(), Some(host), "normalization is not idempotent");
    if let TargetHost::Name(name) = host {
        assert!(!name.is_empty() && !name.ends_with('.') && name.is_ascii(), "{name:?}");
        assert!(!name.bytes().any(|byte| byte.is_ascii_uppercase() || byte <= b' '), "{name:?}");
        assert!(name.parse::<IpAddr>().is_err(), "{name} is an address");
    }
}

/// The end-to-end fields, in order.
fn end_to_end(headers: &HeaderMap) -> Vec<(&HeaderName, &HeaderValue)> {
    let lists = ["connection", "proxy-connection"].map(|name| headers.get_all(name));
    let values = lists.iter().flatten().map(HeaderValue::as_bytes);
    let named: Vec<Vec<u8>> = values
        .flat_map(|value| value.split(|byte| *byte == b','))
        .map(|word| word.trim_ascii().to_ascii_lowercase())
        .collect();
    let mut lengths = 0;
    let mut end_to_end = fields(headers);
    end_to_end.retain(|(name, _)| {
        let name = name.as_str();
        if name == "content-length" {
            lengths += 1;
            return lengths == 1 && !headers.contains_key("transfer-encoding");
        }
        let is_end_to_end = name == "host" || !named.iter().any(|word| word == name.as_bytes());
        is_end_to_end && !HOP_BY_HOP.contains(&name) && !name.starts_with("proxy-")
    });
    end_to_end
}

fn fields(headers: &HeaderMap) -> Vec<(&HeaderName, &HeaderValue)> {
    headers.iter().collect()
}

#[cfg(test)]
#[path = "../../../../fuzz/replay.rs"]
mod replay;

#[cfg(test)]
mod tests {
    use super::replay::replay;

    #[test]
    fn corpus_satisfies_the_properties() {
        replay("proxy", super::proxy);
    }
}
