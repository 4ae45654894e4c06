//! Parses the target of a request: a tunnel or a plain http resource, with its destination.

use std::net::Ipv6Addr;

use grabd_domain::target::TargetHost;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Method, Uri};
use url::Host;

/// A host and a port in normalized form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Destination {
    pub(super) host: TargetHost,
    pub(super) port: u16,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// CONNECT.
    Tunnel(Destination),
    /// Any other method, with the authority and path for the origin.
    Plain(Destination, Authority, PathAndQuery),
}

/// Why a request is invalid. Browsers do not send such requests to a proxy.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Malformed {
    #[error("the request names no host")]
    TargetForm,
    #[error("the request names a scheme other than http")]
    Scheme,
    #[error("the request carries a user name or password")]
    UserInfo,
    #[error("the request's host is invalid")]
    Host,
    #[error("the request's port is invalid")]
    Port,
}

/// Parses the request target of a proxy request.
pub(super) fn target(method: &Method, uri: &Uri) -> Result<Target, Malformed> {
    let authority = uri.authority().ok_or(Malformed::TargetForm)?;
    if method == Method::CONNECT {
        return match uri.scheme() {
            None => destination(authority, None).map(Target::Tunnel),
            Some(_) => Err(Malformed::TargetForm),
        };
    }
    match uri.scheme() {
        Some(scheme) if *scheme == Scheme::HTTP => {}
        Some(_) => return Err(Malformed::Scheme),
        None => return Err(Malformed::TargetForm),
    }
    let path = uri.path_and_query().ok_or(Malformed::TargetForm)?;
    Ok(Target::Plain(destination(authority, Some(80))?, authority.clone(), path.clone()))
}

/// Parses and normalizes a host: an address in any notation becomes an address, a name becomes lower case without its
/// trailing dot. Brackets are optional.
pub(super) fn parse_host(text: &str) -> Option<TargetHost> {
    if let Ok(address) = text.parse::<Ipv6Addr>() {
        return Some(TargetHost::Address(address.into()));
    }
    match Host::parse(text).ok()? {
        Host::Ipv4(address) => Some(TargetHost::Address(address.into())),
        Host::Ipv6(address) => Some(TargetHost::Address(address.into())),
        Host::Domain(name) => {
            // One trailing dot makes a name absolute. With two it is invalid, and could be a number.
            let name = name.strip_suffix('.').unwrap_or(&name);
            (!name.is_empty() && !name.ends_with('.')).then(|| TargetHost::Name(name.to_owned()))
        }
    }
}

fn destination(authority: &Authority, default_port: Option<u16>) -> Result<Destination, Malformed> {
    let text = authority.as_str();
    if text.contains('@') {
        return Err(Malformed::UserInfo);
    }
    let port = match (text.strip_prefix(authority.host()), default_port) {
        (Some(""), Some(port)) => port,
        (Some(rest), _) => rest.strip_prefix(':').and_then(parse_port).ok_or(Malformed::Port)?,
        (None, _) => return Err(Malformed::Host),
    };
    let host = parse_host(authority.host()).ok_or(Malformed::Host)?;
    Ok(Destination { host, port })
}

/// Accepts digits only, since `parse` also accepts a sign. Port 0 is invalid.
fn parse_port(text: &str) -> Option<u16> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|port| digits && *port != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(method: &Method, uri: &str) -> Result<(String, u16), Malformed> {
        let uri: Uri = uri.parse().unwrap();
        match target(method, &uri)? {
            Target::Tunnel(to) | Target::Plain(to, _, _) => Ok((to.host.to_string(), to.port)),
        }
    }

    #[test]
    fn tunnel_requires_a_host_and_a_port() {
        let tunnel = |uri| read(&Method::CONNECT, uri);
        assert_eq!(tunnel("Example.COM:443"), Ok(("example.com".to_owned(), 443)));
        assert_eq!(tunnel("example.com.:443"), Ok(("example.com".to_owned(), 443)));
        assert_eq!(tunnel("[::1]:443"), Ok(("::1".to_owned(), 443)));
        assert_eq!(tunnel("127.1:443"), Ok(("127.0.0.1".to_owned(), 443)));
        assert_eq!(tunnel("example.com"), Err(Malformed::Port));
        for port in ["", "0", "00000", "+443", "-1", "65536", "443a", "4 43"] {
            let authority = format!("example.com:{port}");
            // Invalid URIs are rejected earlier.
            if authority.parse::<Uri>().is_ok() {
                assert_eq!(read(&Method::CONNECT, &authority), Err(Malformed::Port), "{port}");
            }
        }
        assert_eq!(tunnel("example.com..:443"), Err(Malformed::Host));
        assert_eq!(tunnel("me@example.com:443"), Err(Malformed::UserInfo));
        assert_eq!(tunnel("http://example.com:443/"), Err(Malformed::TargetForm));
        assert_eq!(tunnel("/"), Err(Malformed::TargetForm));
    }

    #[test]
    fn plain_request_requires_an_absolute_http_url() {
        let plain = |uri| read(&Method::GET, uri);
        assert_eq!(plain("http://example.com"), Ok(("example.com".to_owned(), 80)));
        assert_eq!(plain("HTTP://example.com:8080/a?b"), Ok(("example.com".to_owned(), 8080)));
        assert_eq!(plain("http://[::1]:81/"), Ok(("::1".to_owned(), 81)));
        assert_eq!(plain("http://example.com:/"), Err(Malformed::Port));
        assert_eq!(plain("http://me:secret@example.com/"), Err(Malformed::UserInfo));
        assert_eq!(plain("https://example.com/"), Err(Malformed::Scheme));
        assert_eq!(plain("ftp://example.com/"), Err(Malformed::Scheme));
        assert_eq!(plain("ws://example.com/"), Err(Malformed::Scheme));
        assert_eq!(plain("/etc/passwd"), Err(Malformed::TargetForm));
        assert_eq!(plain("example.com:80"), Err(Malformed::TargetForm));
        assert_eq!(plain("*"), Err(Malformed::TargetForm));
    }

    #[test]
    fn hosts_are_normalized() {
        let form = |text| parse_host(text).map(|host| host.to_string());
        for text in ["[2001:DB8::1]", "2001:db8::1", "[2001:db8:0:0:0:0:0:1]"] {
            assert_eq!(form(text).as_deref(), Some("2001:db8::1"), "{text}");
        }
        for text in ["example.com", "EXAMPLE.com.", "ex%61mple.com"] {
            assert_eq!(form(text).as_deref(), Some("example.com"), "{text}");
        }
        assert_eq!(form("0x7f.1").as_deref(), Some("127.0.0.1"));
        for text in ["", ".", "..", "example.com..", "127.0.0.1.."] {
            assert_eq!(form(text), None, "{text}");
        }
        assert_eq!(form("a b"), None);
    }
}
