//! The address a caller asks for: the one place where it is judged before anything is looked up.

use std::fmt;
use std::net::IpAddr;

use url::{Host, Url};

use crate::address::{self, Policy};
use crate::faults::{Fault, Field};
use crate::limits::URL_BYTES;

/// An absolute http(s) address whose syntax, host and port are acceptable, in its normal form.
///
/// The browser and the sender of webhooks get this form, never the caller's own text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetUrl(Url);

/// The host part of a target, without brackets and trailing dot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TargetHost {
    /// A literal, already checked.
    Address(IpAddr),
    /// A name, still to be looked up.
    Name(String),
}

/// Endings that never name a public site: RFC 6761, 6762, 7686, 8375 and common habits of local networks.
const LOCAL_ENDINGS: [&str; 11] = [
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
    /// Judges what the text says: syntax and port, not yet whether the host is a public one.
    ///
    /// # Errors
    /// [`Fault::BadRequest`].
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let bad = |allowed: &str| Fault::BadRequest(Field::new("url", &format!("\"{text}\""), allowed));
        let too_long = || Err(bad(&format!("{ALLOWED}, at most {URL_BYTES} bytes long")));
        if text.len() > URL_BYTES {
            return too_long();
        }
        // Parsers disagree about these bytes; whoever sends them wants two parsers to disagree.
        if text.bytes().any(|b| b <= 0x20 || b == 0x7f || b == b'\\') {
            return Err(bad(&format!("{ALLOWED}, without spaces, control characters or backslashes")));
        }
        if !starts_with_host(text) {
            return Err(bad(ALLOWED));
        }
        let url = Url::parse(text).map_err(|_| bad(ALLOWED))?;
        // Escapes make it longer, and the longer one is what is kept and visited.
        if url.as_str().len() > URL_BYTES {
            return too_long();
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(bad(&format!("{ALLOWED}, without a user name or password")));
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

    /// Is the host public, as far as that can be said without looking a name up?
    ///
    /// # Errors
    /// [`Fault::SsrfDetected`].
    pub fn check_public(&self, policy: &Policy) -> Result<(), Fault> {
        let host = self.host();
        let public = match &host {
            TargetHost::Address(address) => address::check_addr(*address, policy).is_ok(),
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

    /// The normal form.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The host.
    pub fn host(&self) -> TargetHost {
        match self.0.host() {
            Some(Host::Ipv4(address)) => TargetHost::Address(address.into()),
            Some(Host::Ipv6(address)) => TargetHost::Address(address.into()),
            // One dot makes a name absolute. With a second one it ends in an empty label, and is refused for that.
            Some(Host::Domain(name)) => TargetHost::Name(name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()),
            None => TargetHost::Name(String::new()),
        }
    }

    /// The port, explicit or the scheme's own.
    pub fn port(&self) -> u16 {
        self.0.port_or_known_default().unwrap_or(80)
    }

    /// Is it https?
    pub fn is_https(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// The normal form of an address that passed [`check_url`] before, as it comes back from the store.
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

/// Is this an address we may be asked to visit? Everything short of the lookup: syntax, host, literal, port.
///
/// # Errors
/// [`Fault::BadRequest`] for what is not an acceptable http(s) URL, [`Fault::SsrfDetected`] for what is one but does
/// not name a public host.
pub fn check_url(text: &str, policy: &Policy) -> Result<TargetUrl, Fault> {
    let target = TargetUrl::parse(text)?;
    target.check_public(policy)?;
    Ok(target)
}

/// May a name be asked for at all? The proxy and webhooks ask too, where no URL was parsed.
pub fn is_local_name(name: &str) -> bool {
    !name.contains('.')
        || LOCAL_ENDINGS
            .iter()
            .any(|ending| name.strip_suffix(ending).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
}

/// Names a DNS message can carry (RFC 1035 section 2.3.4).
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
