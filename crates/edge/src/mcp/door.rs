//! Where a request comes from: under which name we were called, and which page's script calls.
//!
//! A page that points a name of its own at this address cannot make a browser call us, because the name is not ours.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use grabd_proto::v1::ErrorCode;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, HOST, ORIGIN, VARY,
};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use url::Url;

use super::Mcp;
use crate::rest::error::Failure;

/// Headers that a client of the protocol sends.
const ASKED: &str = "authorization, content-type, accept, mcp-protocol-version, mcp-method, mcp-name, mcp-session-id, \
                     last-event-id, x-request-id, traceparent, tracestate";
/// Headers that it wants to read.
const TOLD: &str = "WWW-Authenticate, MCP-Protocol-Version, X-Request-Id, Retry-After, RateLimit, RateLimit-Policy";

/// The names that are ours, and the pages that may call.
pub(super) struct Door {
    hosts: Vec<(String, Option<u16>)>,
    origins: Vec<String>,
}

impl Door {
    pub(super) fn new(own: [&Url; 2], origins: &[String]) -> Self {
        let host = |url: &Url| (url.host_str().unwrap_or_default().to_ascii_lowercase(), url.port_or_known_default());
        let origins = origins.iter().map(|origin| origin.trim_end_matches('/').to_ascii_lowercase());
        Self { hosts: own.map(host).to_vec(), origins: origins.collect() }
    }

    /// Is it a name of ours? A proxy may leave the port out.
    fn is_ours(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let mut lines = headers.get_all(HOST).iter();
        let named = match (lines.next(), lines.next()) {
            (Some(host), None) => host.to_str().ok().and_then(|host| host.parse::<Authority>().ok()),
            (None, _) => uri.authority().cloned(),
            (Some(_), Some(_)) => None,
        };
        named.is_some_and(|named| {
            let name = named.host().to_ascii_lowercase();
            self.hosts.iter().any(|(host, port)| *host == name && named.port_u16().is_none_or(|at| Some(at) == *port))
        })
    }

    /// The page's origin, if it may call; an error when it may not.
    fn page(&self, headers: &HeaderMap) -> Result<Option<HeaderValue>, ()> {
        let mut lines = headers.get_all(ORIGIN).iter();
        let Some(origin) = lines.next() else { return Ok(None) };
        let text = origin.to_str().map_err(|_| ())?.to_ascii_lowercase();
        let is_allowed = lines.next().is_none() && self.origins.contains(&text);
        is_allowed.then(|| Some(origin.clone())).ok_or(())
    }
}

/// Lets a request pass, or not; and tells a browser that its page may.
pub(super) async fn pass(State(mcp): State<Arc<Mcp>>, request: Request, next: Next) -> Response {
    let door = &mcp.door;
    if !door.is_ours(request.uri(), request.headers()) {
        return turned_away("`Host` must be a name of this service.");
    }
    let Ok(page) = door.page(request.headers()) else {
        return turned_away("`Origin` must be one that this service's operator has allowed.");
    };
    let preflight = request.method() == Method::OPTIONS;
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.append(VARY, HeaderValue::from_static("Origin"));
    if let Some(origin) = page {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(TOLD));
        if preflight {
            headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("POST"));
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(ASKED));
            headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
        }
    }
    response
}

fn turned_away(message: &'static str) -> Response {
    let mut response = Failure::new(ErrorCode::BadRequest, message).into_response();
    *response.status_mut() = StatusCode::FORBIDDEN;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn door() -> Door {
        let urls = ["https://mcp.grabd.example/mcp", "http://127.0.0.1:8080"].map(|url| Url::parse(url).unwrap());
        Door::new([&urls[0], &urls[1]], &["https://App.example.com/".to_owned()])
    }

    #[test]
    fn only_names_of_ours_are_answered() {
        for (host, ours) in [
            ("mcp.grabd.example", true),
            ("MCP.grabd.example:443", true),
            ("127.0.0.1:8080", true),
            ("127.0.0.1", true),
            ("mcp.grabd.example:8443", false),
            ("127.0.0.1:80", false),
            ("localhost:8080", false),
            ("evil.example", false),
            ("mcp.grabd.example.evil.example", false),
            ("a b", false),
            ("", false),
        ] {
            let headers = HeaderMap::from_iter([(HOST, HeaderValue::from_str(host).unwrap())]);
            assert_eq!(door().is_ours(&Uri::from_static("/mcp"), &headers), ours, "{host}");
        }
        let twice = HeaderMap::from_iter([(HOST, HeaderValue::from_static("127.0.0.1:8080")); 1]);
        let mut twice = twice;
        twice.append(HOST, HeaderValue::from_static("127.0.0.1:8080"));
        assert!(!door().is_ours(&Uri::from_static("/mcp"), &twice));
        let none = HeaderMap::new();
        assert!(door().is_ours(&Uri::from_static("https://mcp.grabd.example/mcp"), &none));
        assert!(!door().is_ours(&Uri::from_static("/mcp"), &none));
    }

    #[test]
    fn only_allowed_pages_may_call_and_others_are_no_pages() {
        for (origin, allowed) in [
            ("https://app.example.com", true),
            ("HTTPS://APP.example.com", true),
            ("https://app.example.com:444", false),
            ("http://app.example.com", false),
            ("http://127.0.0.1:8080", false),
            ("null", false),
            ("", false),
        ] {
            let headers = HeaderMap::from_iter([(ORIGIN, HeaderValue::from_str(origin).unwrap())]);
            assert_eq!(door().page(&headers).is_ok(), allowed, "{origin}");
        }
        assert_eq!(door().page(&HeaderMap::new()), Ok(None));
    }
}
