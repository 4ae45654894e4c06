//! Validation of redirect URIs, which prevents theft of authorization codes.

use std::fmt;

use url::Url;

/// Maximum length in bytes. The longest redirect URIs in use have a few hundred.
const MAX_BYTES: usize = 2048;

/// Schemes of well-known apps without a dot. All other private-use schemes must have one (RFC 8252 section 7.1).
const KNOWN_SCHEMES: [&str; 4] = ["cursor", "vscode", "vscode-insiders", "windsurf"];

/// Loopback hosts. They are not interchangeable: `localhost` may resolve to another address.
const LOOPBACK_HOSTS: [&str; 3] = ["127.0.0.1", "[::1]", "localhost"];

/// A valid redirect URI, exactly as the client wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RedirectUri {
    text: String,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    /// A web site.
    Https,
    /// A program on the user's machine that listens on an ephemeral port.
    Loopback,
    /// An app that is registered for a private-use scheme.
    Private,
}

/// Why a redirect URI is invalid, as the end of a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "described by the messages")]
pub enum RedirectError {
    #[error("must be an absolute URI of visible ASCII characters, at most {MAX_BYTES} bytes long")]
    Text,
    #[error("must not have a fragment")]
    Fragment,
    #[error("must not have a wildcard")]
    Wildcard,
    #[error("must not have a user name or password")]
    UserInfo,
    #[error("must have a host name or address in its normal form")]
    Host,
    #[error("must be https, unless its host is 127.0.0.1, [::1] or localhost")]
    Insecure,
    #[error(
        "must have a scheme that is https or http, contains a dot, or is one of cursor, vscode, vscode-insiders, windsurf"
    )]
    Scheme,
}

impl RedirectUri {
    /// Parses and validates a redirect URI.
    ///
    /// # Errors
    /// The violated rule.
    pub fn parse(text: &str) -> Result<Self, RedirectError> {
        // URL parsers treat other characters differently, and some look alike.
        let visible = text.bytes().all(|b| b.is_ascii_graphic() && !matches!(b, b'\\' | b'"' | b'<' | b'>' | b'`'));
        if text.len() > MAX_BYTES || !visible {
            return Err(RedirectError::Text);
        }
        if text.contains('#') {
            return Err(RedirectError::Fragment);
        }
        if text.contains('*') {
            return Err(RedirectError::Wildcard);
        }
        let (scheme, rest) = text.split_once(':').ok_or(RedirectError::Text)?;
        let kind = match scheme {
            "https" => Kind::Https,
            "http" => Kind::Loopback,
            _ if is_private_use(scheme) => Kind::Private,
            _ => return Err(RedirectError::Scheme),
        };
        let authority = authority(rest);
        if authority.is_some_and(|authority| authority.contains('@')) {
            return Err(RedirectError::UserInfo);
        }
        let url = Url::parse(text).map_err(|_| RedirectError::Text)?;
        match kind {
            Kind::Private if rest.trim_matches('/').is_empty() => return Err(RedirectError::Text),
            Kind::Private => {}
            Kind::Https | Kind::Loopback => {
                let (host, port) = host_and_port(authority.unwrap_or_default());
                // The host must be in the form that the browser uses: no 0x7f.1, no %6c, no empty port.
                let normal = url.host_str().is_some_and(|normal| normal == host);
                if !normal || !port.is_none_or(is_port) {
                    return Err(RedirectError::Host);
                }
                if kind == Kind::Loopback && !LOOPBACK_HOSTS.contains(&host) {
                    return Err(RedirectError::Insecure);
                }
            }
        }
        Ok(Self { text: text.to_owned(), kind })
    }

    /// Returns whether the requested URI matches this registered one. They must be identical, except for the port of
    /// loopback URIs (RFC 8252 section 7.3).
    pub fn matches(&self, requested: &Self) -> bool {
        let is_loopback = self.kind == Kind::Loopback && requested.kind == Kind::Loopback;
        self.text == requested.text || is_loopback && self.without_port() == requested.without_port()
    }

    /// The URI as the client wrote it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether it is a loopback URI. Any program on that machine could listen on it.
    pub fn is_loopback(&self) -> bool {
        self.kind == Kind::Loopback
    }

    /// The target as shown to users: host and port, or the scheme of an app.
    pub fn display_location(&self) -> &str {
        let (scheme, rest) = self.parts();
        match self.kind {
            Kind::Https | Kind::Loopback => authority(rest).unwrap_or_default(),
            Kind::Private => scheme,
        }
    }

    /// The CSP source for `form-action` that allows redirects to this URI.
    pub fn origin_or_scheme(&self) -> String {
        let (scheme, rest) = self.parts();
        match (self.kind, authority(rest)) {
            // The CSP grammar does not allow IPv6 addresses.
            (Kind::Https | Kind::Loopback, Some(authority)) if !authority.starts_with('[') => {
                format!("{scheme}://{authority}")
            }
            (Kind::Https | Kind::Loopback | Kind::Private, _) => format!("{scheme}:"),
        }
    }

    /// The URI with the fields appended to its query.
    pub fn with_query(&self, fields: &[(&str, &str)]) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(fields);
        let text = &self.text;
        let separator = match text.split_once('?') {
            None => "?",
            Some((_, before)) if before.is_empty() || before.ends_with('&') => "",
            Some(_) => "&",
        };
        format!("{text}{separator}{}", query.finish())
    }

    fn parts(&self) -> (&str, &str) {
        self.text.split_once(':').unwrap_or((&self.text, ""))
    }

    fn without_port(&self) -> (&str, &str) {
        let (_, rest) = self.parts();
        let authority = authority(rest).unwrap_or_default();
        (host_and_port(authority).0, &rest[2 + authority.len()..])
    }
}

impl fmt::Display for RedirectUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Returns whether the scheme is an allowed private-use scheme: a reversed domain name or a well-known scheme.
fn is_private_use(scheme: &str) -> bool {
    let is_name =
        |label: &str| !label.is_empty() && label.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'+'));
    KNOWN_SCHEMES.contains(&scheme)
        || scheme.starts_with(|c: char| c.is_ascii_lowercase())
            && scheme.contains('.')
            && scheme.split('.').all(is_name)
}

/// The authority: the text between `//` and the path or query.
fn authority(rest: &str) -> Option<&str> {
    let rest = rest.strip_prefix("//")?;
    Some(&rest[..rest.find(['/', '?']).unwrap_or(rest.len())])
}

fn host_and_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rfind(']') {
        Some(end) => (&authority[..=end], authority[end + 1..].strip_prefix(':')),
        None => authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port))),
    }
}

fn is_port(text: &str) -> bool {
    !text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit()) && text.parse::<u16>().is_ok()
}

#[cfg(test)]
#[path = "redirect_tests.rs"]
mod tests;
