//! Where a proxy is: `http://HOST:PORT`, `https://HOST:PORT` or `socks5://HOST:PORT`.

use std::fmt;
use std::net::IpAddr;

use url::{Host, Url};

use crate::address::{self, Policy};
use crate::capture::HIDDEN;
use crate::faults::{Fault, Field};
use crate::target::{TargetHost, is_local_name, is_localhost, is_well_formed_name};

/// What is accepted, as the end of "must be …".
pub(super) const ALLOWED: &str = "http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT with a public host";

/// Maximum length of a URL in bytes: a host name has at most 253.
pub const URL_BYTES: usize = 300;

/// Maximum number of digits of a port, as in the OpenAPI document.
const PORT_DIGITS: usize = 5;

/// The protocol of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProxyScheme {
    /// HTTP CONNECT over TCP.
    Http,
    /// HTTP CONNECT over TLS.
    Https,
    /// SOCKS 5 (RFC 1928).
    Socks5,
}

impl ProxyScheme {
    /// All schemes.
    pub const ALL: [Self; 3] = [Self::Http, Self::Https, Self::Socks5];

    /// The scheme in URLs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Socks5 => "socks5",
        }
    }
}

/// Where a proxy is, with valid syntax, host and port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyUrl {
    scheme: ProxyScheme,
    host: TargetHost,
    port: u16,
}

impl ProxyUrl {
    /// Parses a URL and checks its syntax and port. Whether the host is public is checked by [`Self::check_public`].
    ///
    /// # Errors
    /// [`Fault::BadRequest`]. A user name or password in the URL is not shown.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        if text.contains('@') {
            let allowed = format!("{ALLOWED}, without a user name, which `username` takes");
            return Err(Fault::BadRequest(Field::new("url", HIDDEN, allowed)));
        }
        Self::restore(text).ok_or_else(|| Fault::BadRequest(Field::new("url", &format!("\"{text}\""), ALLOWED)))
    }

    /// Reads a stored URL. `None` if it is not a valid one.
    pub fn restore(text: &str) -> Option<Self> {
        if text.len() > URL_BYTES || text.bytes().any(|byte| byte <= 0x20 || byte == 0x7f || byte == b'\\') {
            return None;
        }
        let (scheme, rest) = text.split_once("://")?;
        let scheme = ProxyScheme::ALL.into_iter().find(|known| known.as_str().eq_ignore_ascii_case(scheme))?;
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = authority.rsplit_once(':')?;
        let has_digits = (1..=PORT_DIGITS).contains(&port.len()) && port.bytes().all(|byte| byte.is_ascii_digit());
        if host.is_empty() || !has_digits || authority.contains(['/', '?', '#', '@']) {
            return None;
        }
        let port: u16 = port.parse().ok()?;
        address::check_port(port).ok()?;
        if host.contains(':') && !(host.starts_with('[') && host.ends_with(']')) {
            return None;
        }
        // As in URLs of pages, so that a host has one form.
        let url = Url::parse(&format!("http://{host}/")).ok()?;
        let host = match url.host()? {
            Host::Ipv4(address) => TargetHost::Address(address.into()),
            Host::Ipv6(address) => TargetHost::Address(address.into()),
            Host::Domain(name) => TargetHost::Name(name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()),
        };
        let is_valid = match &host {
            TargetHost::Address(_) => true,
            TargetHost::Name(name) => is_well_formed_name(name),
        };
        is_valid.then_some(Self { scheme, host, port })
    }

    /// Checks that the host is public, without looking up names.
    ///
    /// # Errors
    /// [`Fault::SsrfDetected`].
    pub fn check_public(&self, policy: &Policy) -> Result<(), Fault> {
        let is_public = match &self.host {
            TargetHost::Address(address) => address::check_addr(*address, policy).is_ok(),
            TargetHost::Name(name) if is_localhost(name) => !policy.localhost().is_empty(),
            TargetHost::Name(name) => !is_local_name(name),
        };
        if is_public { Ok(()) } else { Err(self.not_public()) }
    }

    /// The error about a host that is not public.
    pub fn not_public(&self) -> Fault {
        Fault::SsrfDetected(Field::new("url", &format!("\"{}\"", self.host), "a URL whose host is a public address"))
    }

    /// The protocol of the proxy.
    pub const fn scheme(&self) -> ProxyScheme {
        self.scheme
    }

    /// The host.
    pub const fn host(&self) -> &TargetHost {
        &self.host
    }

    /// The port.
    pub const fn port(&self) -> u16 {
        self.port
    }
}

impl fmt::Display for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scheme, host, port } = self;
        match host {
            TargetHost::Address(IpAddr::V6(address)) => write!(f, "{}://[{address}]:{port}", scheme.as_str()),
            TargetHost::Address(IpAddr::V4(_)) | TargetHost::Name(_) => {
                write!(f, "{}://{host}:{port}", scheme.as_str())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Code;

    #[test]
    fn url_has_one_of_three_schemes_a_host_and_a_port() {
        for (text, read) in [
            ("http://proxy.example.com:3128", "http://proxy.example.com:3128"),
            ("HTTPS://Proxy.Example.com.:443/", "https://proxy.example.com:443"),
            ("socks5://8.8.8.8:1080", "socks5://8.8.8.8:1080"),
            ("http://134744072:80", "http://8.8.8.8:80"),
            ("https://[2606:4700::1111]:8443", "https://[2606:4700::1111]:8443"),
        ] {
            let url = ProxyUrl::parse(text).unwrap();
            assert_eq!(url.to_string(), read, "{text}");
            assert_eq!(ProxyUrl::restore(read), Some(url), "{text}");
        }
        for text in [
            "",
            "proxy.example.com:3128",
            "http://proxy.example.com",
            "http://proxy.example.com:",
            "http://proxy.example.com:0",
            "http://proxy.example.com:22",
            "http://proxy.example.com:99999",
            "http://proxy.example.com:003128",
            "http://proxy.example.com:3128:3128",
            "http://proxy.example.com:80:3128",
            "http://:3128",
            "http://proxy.example.com:3128/path",
            "http://proxy.example.com:3128?a=b",
            "socks4://proxy.example.com:1080",
            "socks5h://proxy.example.com:1080",
            "http://proxy example.com:3128",
            "http://2606:4700::1111:3128",
        ] {
            let fault = ProxyUrl::parse(text).unwrap_err();
            assert_eq!((fault.code(), fault.field().unwrap().name), (Code::BadRequest, "url"), "{text}");
        }
    }

    #[test]
    fn login_in_the_url_is_refused_and_not_shown() {
        let fault = ProxyUrl::parse("http://me:hidden@proxy.example.com:3128").unwrap_err();
        assert!(!fault.to_string().contains("hidden") && fault.to_string().contains("username"), "{fault}");
    }

    #[test]
    fn private_hosts_are_refused() {
        for (text, is_public) in [
            ("http://8.8.8.8:3128", true),
            ("http://proxy.example.com:3128", true),
            ("http://127.0.0.1:3128", false),
            ("socks5://10.0.0.1:1080", false),
            ("http://169.254.169.254:80", false),
            ("https://[::1]:443", false),
            ("http://localhost:3128", false),
            ("http://proxy.internal:3128", false),
        ] {
            let checked = ProxyUrl::parse(text).unwrap().check_public(&Policy::default());
            assert_eq!(checked.map_err(|fault| fault.code()), if is_public { Ok(()) } else { Err(Code::SsrfDetected) });
        }
    }
}
