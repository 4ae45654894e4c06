//! What holds of every request that reaches the proxy. The fuzzer looks for one that breaks a property, and the tests
//! replay what it kept in `fuzz/corpus`. A property panics when it is broken.

use std::convert::Infallible;
use std::net::IpAddr;

use bytes::Bytes;
use grabd_domain::target::TargetHost;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Empty;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;

use super::Limits;
use super::connection::reader;
use super::headers::{for_browser, for_origin};
use super::target::{Destination, Target, parse_host, target};

/// Fields about one connection only (RFC 9110 section 7.6.1), beside those that begin with `proxy-`.
const HOP_BY_HOP: [&str; 6] = ["connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"];

/// Every request of a connection leads to one host and a port, and loses what was for the proxy, no less and no more.
/// The input is what the browser sends.
pub fn proxy(data: &[u8]) {
    let service = service_fn(|request| async move {
        judge(&request);
        // Refused, so that what comes behind a CONNECT is read as a request too.
        let mut response = Response::new(Empty::<Bytes>::new());
        *response.status_mut() = StatusCode::FORBIDDEN;
        Ok::<_, Infallible>(response)
    });
    let mut reader = reader(Limits::default().header_bytes);
    // The input ends before any answer, which would otherwise count as the browser going away.
    reader.half_close(true);
    let both_ways = tokio::io::join(data, tokio::io::sink());
    let connection = reader.serve_connection(TokioIo::new(both_ways), service);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a thread can run futures");
    // Bytes that are no request end the connection, which is as good an end as any.
    drop(runtime.block_on(connection));
}

/// Checks one request, if it is one that a proxy answers.
fn judge<B>(request: &Request<B>) {
    let headers = request.headers();
    let authority = request.uri().authority().map_or("", |authority| authority.as_str());
    let port = authority.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')).map_or("", |(_, port)| port);
    assert_eq!(fields(&for_browser(headers.clone())), travelling(headers), "{headers:?}");
    let Ok(asked) = target(request.method(), request.uri()) else { return };
    assert!(port.bytes().all(|byte| byte.is_ascii_digit()), "{authority}");
    match asked {
        Target::Tunnel(destination) => {
            assert_eq!(request.method(), Method::CONNECT);
            leads_somewhere(&destination);
        }
        Target::Plain(destination, authority, path) => {
            leads_somewhere(&destination);
            assert!(path.to_string().starts_with(['/', '*']), "{path:?}");
            // The origin reads what the guard has judged.
            let get = format!("http://{authority}/").parse().expect("an authority fits into an address");
            let Ok(Target::Plain(again, _, _)) = target(&Method::GET, &get) else {
                panic!("{authority} leads nowhere")
            };
            assert_eq!(again, destination);

            let host = HeaderValue::from_str(authority.as_str()).expect("an authority is visible ASCII");
            let sent = for_origin(headers.clone(), &host);
            assert_eq!(sent.get_all("host").iter().collect::<Vec<_>>(), [&host], "{headers:?}");
            let connection: Vec<_> = sent.get_all("connection").iter().collect();
            assert!(connection.is_empty() || connection == ["keep-alive"], "{headers:?}");
            let mut rest = fields(&sent);
            rest.retain(|(name, _)| *name != "host" && *name != "connection");
            let mut expected = travelling(headers);
            expected.retain(|(name, _)| *name != "host");
            assert_eq!(rest, expected, "{headers:?}");
        }
    }
}

fn leads_somewhere(destination: &Destination) {
    let Destination { host, port } = destination;
    assert_ne!(*port, 0, "{host}");
    assert_eq!(parse_host(&host.to_string()).as_ref(), Some(host), "a second reading changes it");
    if let TargetHost::Name(name) = host {
        assert!(!name.is_empty() && !name.ends_with('.') && name.is_ascii(), "{name:?}");
        assert!(!name.bytes().any(|byte| byte.is_ascii_uppercase() || byte <= b' '), "{name:?}");
        assert!(name.parse::<IpAddr>().is_err(), "{name} is an address");
    }
}

/// The fields that are about the message, in their order.
fn travelling(headers: &HeaderMap) -> Vec<(&HeaderName, &HeaderValue)> {
    let lists = ["connection", "proxy-connection"].map(|name| headers.get_all(name));
    let values = lists.iter().flatten().map(HeaderValue::as_bytes);
    let named: Vec<Vec<u8>> = values
        .flat_map(|value| value.split(|byte| *byte == b','))
        .map(|word| word.trim_ascii().to_ascii_lowercase())
        .collect();
    let mut lengths = 0;
    let mut travelling = fields(headers);
    travelling.retain(|(name, _)| {
        let name = name.as_str();
        if name == "content-length" {
            lengths += 1;
            return lengths == 1 && !headers.contains_key("transfer-encoding");
        }
        let of_the_message = name == "host" || !named.iter().any(|word| word == name.as_bytes());
        of_the_message && !HOP_BY_HOP.contains(&name) && !name.starts_with("proxy-")
    });
    travelling
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
    fn the_corpus_keeps_them() {
        replay("proxy", super::proxy);
    }
}
