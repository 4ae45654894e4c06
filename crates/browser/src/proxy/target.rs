//! What a request asks for: a tunnel or a plain http resource, and where.

use std::net::Ipv6Addr;

use grabd_domain::target::TargetHost;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Method, Uri};
use url::Host;

/// A host and a port, in the form they are compared in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Destination {
    pub(super) host: TargetHost,
    pub(super) port: u16,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// CONNECT.
    Tunnel(Destination),
    /// Anything else, with what the origin is to see of the address.
    Plain(Destination, Authority, PathAndQuery),
}

/// A request that no browser sends to a proxy.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Malformed {
    #[error("the request names no host")]
    Form,
    #[error("the request names a scheme other than http")]
    Scheme,
    #[error("the request carries a user name or password")]
    UserInfo,
    #[error("the request's host cannot be read")]
    Host,
    #[error("the request's port cannot be read")]
    Port,
}

/// What a request line asks a proxy for.
pub(super) fn target(method: &Method, uri: &Uri) -> Result<Target, Malformed> {
    let authority = uri.authority().ok_or(Malformed::Form)?;
    if method == Method::CONNECT {
        return match uri.scheme() {
            None => destination(authority, None).map(Target::Tunnel),
            Some(_) => Err(Malformed::Form),
        };
    }
    match uri.scheme() {
        Some(scheme) if *scheme == Scheme::HTTP => {}
        Some(_) => return Err(Malformed::Scheme),
        None => return Err(Malformed::Form),
    }
    let path = uri.path_and_query().ok_or(Malformed::Form)?;
    Ok(Target::Plain(destination(authority, Some(80))?, authority.clone(), path.clone()))
}

/// A host in the form the guard and the attempts know: an address is one in any spelling, a name is in lower case
/// without its trailing dot. Brackets are optional.
pub(super) fn parse_host(text: &str) -> Option<TargetHost> {
    if let Ok(address) = text.parse::<Ipv6Addr>() {
        return Some(TargetHost::Address(address.into()));
    }
    match Host::parse(text).ok()? {
        Host::Ipv4(address) => Some(TargetHost::Address(address.into())),
        Host::Ipv6(address) => Some(TargetHost::Address(address.into())),
        Host::Domain(name) => {
            // One dot makes a name absolute. With a second one it is no name, and may be a number in disguise.
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

/// Digits alone, since a number may also be written with a sign; and nothing answers at 0.
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
    fn a_tunnel_needs_a_host_and_a_port() {
        let tunnel = |uri| read(&Method::CONNECT, uri);
        assert_eq!(tunnel("Example.COM:443"), Ok(("example.com".to_owned(), 443)));
        assert_eq!(tunnel("example.com.:443"), Ok(("example.com".to_owned(), 443)));
        assert_eq!(tunnel("[::1]:443"), Ok(("::1".to_owned(), 443)));
        assert_eq!(tunnel("127.1:443"), Ok(("127.0.0.1".to_owned(), 443)));
        assert_eq!(tunnel("example.com"), Err(Malformed::Port));
        for port in ["", "0", "00000", "+443", "-1", "65536", "443a", "4 43"] {
            let authority = format!("example.com:{port}");
            // What is no address at all never gets this far.
            if authority.parse::<Uri>().is_ok() {
                assert_eq!(read(&Method::CONNECT, &authority), Err(Malformed::Port), "{port}");
            }
        }
        assert_eq!(tunnel("example.com..:443"), Err(Malformed::Host));
        assert_eq!(tunnel("me@example.com:443"), Err(Malformed::UserInfo));
        assert_eq!(tunnel("http://example.com:443/"), Err(Malformed::Form));
        assert_eq!(tunnel("/"), Err(Malformed::Form));
    }

    #[test]
    fn a_plain_request_needs_an_absolute_http_address() {
        let plain = |uri| read(&Method::GET, uri);
        assert_eq!(plain("http://example.com"), Ok(("example.com".to_owned(), 80)));
        assert_eq!(plain("HTTP://example.com:8080/a?b"), Ok(("example.com".to_owned(), 8080)));
        assert_eq!(plain("http://[::1]:81/"), Ok(("::1".to_owned(), 81)));
        assert_eq!(plain("http://example.com:/"), Err(Malformed::Port));
        assert_eq!(plain("http://me:secret@example.com/"), Err(Malformed::UserInfo));
        assert_eq!(plain("https://example.com/"), Err(Malformed::Scheme));
        assert_eq!(plain("ftp://example.com/"), Err(Malformed::Scheme));
        assert_eq!(plain("ws://example.com/"), Err(Malformed::Scheme));
        assert_eq!(plain("/etc/passwd"), Err(Malformed::Form));
        assert_eq!(plain("example.com:80"), Err(Malformed::Form));
        assert_eq!(plain("*"), Err(Malformed::Form));
    }

    #[test]
    fn hosts_have_one_form() {
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
