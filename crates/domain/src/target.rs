//! Validation of target URLs, before any DNS lookup.

use std::fmt;
use std::net::IpAddr;

use url::{Host, Url};

use crate::address::{self, Policy};
use crate::faults::{Fault, Field};
use crate::limits::URL_BYTES;

/// A normalized absolute http(s) URL with valid syntax, host and port.
///
/// The browser and the webhook sender use this form, never the caller's original text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetUrl(Url);

/// The host of a target URL, without brackets and trailing dot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TargetHost {
    /// An IP literal.
    Address(IpAddr),
    /// A DNS name, not resolved yet.
    Name(String),
}

/// Suffixes that are never public: RFC 6761, 6762, 7686, 8375 and common names of local networks.
const LOCAL_SUFFIXES: [&str; 11] = [
    "localhost",
    "local",
    "internal",
    "home.arpa",
    "localdomain",
    "lan",
    "corp",
    "home",
    "intranet",
    "onion",
    "invalid",
];

const ALLOWED: &str = "an absolute http(s) URL of a public address";

impl TargetUrl {
    /// Parses a URL and checks its syntax and port. Whether the host is public is checked by
    /// [`TargetUrl::check_public`].
    ///
    /// # Errors
    /// [`Fault::BadRequest`].
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let bad = |allowed: &str| Fault::BadRequest(Field::new("url", &format!("\"{text}\""), allowed));
        let too_long = || Err(bad(&format!("{ALLOWED}, at most {URL_BYTES} bytes long")));
        if text.len() > URL_BYTES {
            return too_long();
        }
        // URL parsers treat these bytes differently, which attacks exploit.
        if text.bytes().any(|b| b <= 0x20 || b == 0x7f || b == b'\\') {
            return Err(bad(&format!("{ALLOWED}, without spaces, control characters or backslashes")));
        }
        if !starts_with_host(text) {
            return Err(bad(ALLOWED));
        }
        let url = Url::parse(text).map_err(|_| bad(ALLOWED))?;
        // Percent-encoding makes the URL longer. The longer form is stored and visited.
        if url.as_str().len() > URL_BYTES {
            return too_long();
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(bad(&format!("{ALLOWED}, without a user name or password, which `basic_auth` takes")));
        }
        let target = TargetUrl(url);
        if matches!(target.host(), TargetHost::Name(name) if !is_well_formed_name(&name)) {
            return Err(bad(&format!("{ALLOWED} with a valid host name")));
        }
        match address::check_port(target.port()) {
            Ok(()) => Ok(target),
            Err(_) => Err(bad(&format!("{ALLOWED}, on a port used by web sites"))),
        }
    }

    /// Checks that the host is public, without looking up names.
    ///
    /// # Errors
    /// [`Fault::SsrfDetected`].
    pub fn check_public(&self, policy: &Policy) -> Result<(), Fault> {
        let host = self.host();
        let public = match &host {
            TargetHost::Address(address) => address::check_addr(*address, policy).is_ok(),
            TargetHost::Name(name) if is_localhost(name) => !policy.localhost().is_empty(),
            TargetHost::Name(name) => !is_local_name(name),
        };
        match public {
            true => Ok(()),
            false => {
                let allowed = "a URL whose host is a public address";
                Err(Fault::SsrfDetected(Field::new("url", &format!("\"{host}\""), allowed)))
            }
        }
    }

    /// The normalized URL.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The host.
    pub fn host(&self) -> TargetHost {
        match self.0.host() {
            Some(Host::Ipv4(address)) => TargetHost::Address(address.into()),
            Some(Host::Ipv6(address)) => TargetHost::Address(address.into()),
            // One trailing dot makes a name absolute. With two, the last label is empty and the name is refused.
            Some(Host::Domain(name)) => TargetHost::Name(name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()),
            None => TargetHost::Name(String::new()),
        }
    }

    /// The path, percent-encoded. It begins with a slash.
    pub fn path(&self) -> &str {
        self.0.path()
    }

    /// The port, or the default port of the scheme.
    pub fn port(&self) -> u16 {
        self.0.port_or_known_default().unwrap_or(80)
    }

    /// Returns whether the scheme is https.
    pub fn is_https(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// Restores a stored URL that passed [`check_url`] before.
    pub fn restore(text: &str) -> Option<Self> {
        Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host()).map(Self)
    }
}

impl fmt::Display for TargetUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for TargetHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Name(name) => name.fmt(f),
        }
    }
}

/// Parses a target URL and performs all checks except the DNS lookup: syntax, host, IP literal, port.
///
/// # Errors
/// [`Fault::BadRequest`] if it is not a valid http(s) URL, [`Fault::SsrfDetected`] if its host is not public.
pub fn check_url(text: &str, policy: &Policy) -> Result<TargetUrl, Fault> {
    let target = TargetUrl::parse(text)?;
    target.check_public(policy)?;
    Ok(target)
}

/// Whether a name stands for this machine (RFC 6761). It is never looked up.
pub fn is_localhost(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}

/// Returns whether a name is local and must not be looked up. The egress guard uses this too, where no URL was parsed.
pub fn is_local_name(name: &str) -> bool {
    !name.contains('.')
        || LOCAL_SUFFIXES
            .iter()
            .any(|suffix| name.strip_suffix(suffix).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
}

/// Returns whether the name fits in a DNS message (RFC 1035 section 2.3.4).
pub fn is_well_formed_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= 253 && name.split('.').all(|label| (1..=63).contains(&label.len()))
}

fn starts_with_host(text: &str) -> bool {
    let rest = ["http://", "https://"]
        .iter()
        .find_map(|scheme| text.get(..scheme.len()).filter(|t| t.eq_ignore_ascii_case(scheme)).map(|_| scheme.len()))
        .map(|at| &text[at..]);
    rest.and_then(|rest| rest.chars().next()).is_some_and(|c| !matches!(c, '/' | '?' | '#' | ':' | '@'))
}

#[cfg(test)]
#[path = "target_tests.rs"]
mod tests;
