//! Checks of the `Host` and `Origin` headers, and CORS headers.
//!
//! The `Host` check prevents DNS rebinding: a page that resolves its own name to this server still sends its own
//! `Host`.

use std::collections::BTreeSet;
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

use crate::rest::error::ApiError;

/// Request headers of MCP clients.
const REQUEST_HEADERS: &str = "authorization, content-type, accept, mcp-protocol-version, mcp-method, mcp-name, \
                               mcp-session-id, last-event-id, x-request-id, traceparent, tracestate";
/// Response headers that MCP clients read.
const RESPONSE_HEADERS: &str =
    "WWW-Authenticate, MCP-Protocol-Version, Error-Cause, X-Request-Id, Retry-After, RateLimit, RateLimit-Policy";

/// The names of the loopback interface.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

fn is_loopback(url: &Url) -> bool {
    url.host_str().is_some_and(|host| LOOPBACK.contains(&host))
}

/// Host names of this server, and origins of pages that may call it.
pub(super) struct HostOriginPolicy {
    hosts: Vec<(String, Option<u16>)>,
    origins: Vec<String>,
}

impl HostOriginPolicy {
    /// `own` are URLs of this service. A service on a loopback port also has all names of loopback, since its operator
    /// may open any of them.
    pub(super) fn new(own: [&Url; 2], loopback_port: Option<u16>, origins: &[String]) -> Self {
        let ports = own.into_iter().filter(|url| is_loopback(url)).map(Url::port_or_known_default);
        let ports: BTreeSet<u16> = ports.chain([loopback_port]).flatten().collect();
        let aliases = ports.into_iter().flat_map(|port| LOOPBACK.map(|name| format!("http://{name}:{port}")));
        let aliases = aliases.filter_map(|url| Url::parse(&url).ok());
        let own: Vec<Url> = own.into_iter().cloned().chain(aliases).collect();
        let host = |url: &Url| (url.host_str().unwrap_or_default().to_ascii_lowercase(), url.port_or_known_default());
        let configured = origins.iter().map(|origin| origin.trim_end_matches('/').to_ascii_lowercase());
        let own_origins = own.iter().map(|url| url.origin().ascii_serialization());
        Self { hosts: own.iter().map(host).collect(), origins: configured.chain(own_origins).collect() }
    }

    /// Whether the request has a host name of this server. The port may be missing because proxies may remove it.
    fn is_own_host(&self, uri: &Uri, headers: &HeaderMap) -> bool {
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

    /// The origin of the calling page, `None` for other clients, or an error if the page is not allowed.
    fn allowed_origin(&self, headers: &HeaderMap) -> Result<Option<HeaderValue>, ()> {
        let mut lines = headers.get_all(ORIGIN).iter();
        let Some(origin) = lines.next() else { return Ok(None) };
        let text = origin.to_str().map_err(|_| ())?.to_ascii_lowercase();
        let is_allowed = lines.next().is_none() && self.origins.contains(&text);
        is_allowed.then(|| Some(origin.clone())).ok_or(())
    }
}

/// Rejects requests with a wrong `Host` or `Origin`, and adds CORS headers for allowed pages.
pub(super) async fn check(State(policy): State<Arc<HostOriginPolicy>>, request: Request, next: Next) -> Response {
    if !policy.is_own_host(request.uri(), request.headers()) {
        return forbidden("`Host` must be a host name of this service.");
    }
    let Ok(origin) = policy.allowed_origin(request.headers()) else {
        return forbidden("`Origin` must be the origin of this service, or one that its operator has allowed.");
    };
    let preflight = request.method() == Method::OPTIONS;
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.append(VARY, HeaderValue::from_static("Origin"));
    if let Some(origin) = origin {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(RESPONSE_HEADERS));
        if preflight {
            headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("POST"));
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(REQUEST_HEADERS));
            headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
        }
    }
    response
}

fn forbidden(message: &'static str) -> Response {
    let mut response = ApiError::new(ErrorCode::BadRequest, message).into_response();
    *response.status_mut() = StatusCode::FORBIDDEN;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> HostOriginPolicy {
        let urls = ["https://mcp.grabd.example/mcp", "http://127.0.0.1:8080"].map(|url| Url::parse(url).unwrap());
        HostOriginPolicy::new([&urls[0], &urls[1]], Some(8081), &["https://App.example.com/".to_owned()])
    }

    #[test]
    fn only_own_host_names_are_accepted() {
        for (host, expected) in [
            ("mcp.grabd.example", true),
            ("MCP.grabd.example:443", true),
            ("127.0.0.1:8080", true),
            ("127.0.0.1", true),
            ("mcp.grabd.example:8443", false),
            ("127.0.0.1:80", false),
            ("localhost:8080", true),
            ("[::1]:8080", true),
            ("[::1]:8081", true),
            ("localhost:8082", false),
            ("localhost.evil.example:8080", false),
            ("evil.example", false),
            ("mcp.grabd.example.evil.example", false),
            ("a b", false),
            ("", false),
        ] {
            let headers = HeaderMap::from_iter([(HOST, HeaderValue::from_str(host).unwrap())]);
            assert_eq!(policy().is_own_host(&Uri::from_static("/mcp"), &headers), expected, "{host}");
        }
        let two = HeaderMap::from_iter([(HOST, HeaderValue::from_static("127.0.0.1:8080")); 1]);
        let mut two = two;
        two.append(HOST, HeaderValue::from_static("127.0.0.1:8080"));
        assert!(!policy().is_own_host(&Uri::from_static("/mcp"), &two));
        let none = HeaderMap::new();
        assert!(policy().is_own_host(&Uri::from_static("https://mcp.grabd.example/mcp"), &none));
        assert!(!policy().is_own_host(&Uri::from_static("/mcp"), &none));
    }

    #[test]
    fn only_allowed_origins_are_accepted() {
        for (origin, allowed) in [
            ("https://app.example.com", true),
            ("HTTPS://APP.example.com", true),
            ("https://app.example.com:444", false),
            ("http://app.example.com", false),
            ("https://mcp.grabd.example", true),
            ("http://mcp.grabd.example", false),
            ("http://127.0.0.1:8080", true),
            ("http://localhost:8081", true),
            ("http://[::1]:8080", true),
            ("https://localhost:8080", false),
            ("http://localhost:8082", false),
            ("http://localhost", false),
            ("null", false),
            ("", false),
        ] {
            let headers = HeaderMap::from_iter([(ORIGIN, HeaderValue::from_str(origin).unwrap())]);
            assert_eq!(policy().allowed_origin(&headers).is_ok(), allowed, "{origin}");
        }
        assert_eq!(policy().allowed_origin(&HeaderMap::new()), Ok(None));
    }
}
