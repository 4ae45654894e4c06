//! Where an app wants its answers, which is where a thief would want them too.

use std::fmt;

use url::Url;

/// Most bytes of an address; the longest that are in use have a few hundred.
const MAX_BYTES: usize = 2048;

/// Schemes of well-known apps that have no dot, which every other private-use scheme must have (RFC 8252 section 7.1).
const KNOWN_SCHEMES: [&str; 4] = ["cursor", "vscode", "vscode-insiders", "windsurf"];

/// Hosts that are this machine. They are three different ones: what a name leads to is not for us to say.
const LOOPBACK_HOSTS: [&str; 3] = ["127.0.0.1", "[::1]", "localhost"];

/// An address that answers may be sent to, exactly as the app wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RedirectUri {
    text: String,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    /// A web site.
    Https,
    /// A program on the person's own machine, which listens at a port that it is given when it starts.
    Loopback,
    /// An app that the operating system knows by the scheme.
    Private,
}

/// Why answers cannot be sent to an address, as the end of a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say it")]
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
    /// The address in `text`, if an app may register it.
    ///
    /// # Errors
    /// Why not.
    pub fn parse(text: &str) -> Result<Self, RedirectError> {
        // Parsers, and people, disagree about everything else.
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
                // What the browser will go to is what stands there: no 0x7f.1, no %6c, no empty port.
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

    /// May an answer go to `asked`, when this one was registered? They must be the same, character by character, but for
    /// the port of a program on the person's own machine (RFC 8252 section 7.3).
    pub fn matches(&self, asked: &Self) -> bool {
        let is_loopback = self.kind == Kind::Loopback && asked.kind == Kind::Loopback;
        self.text == asked.text || is_loopback && self.without_port() == asked.without_port()
    }

    /// The address as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Is it a program on the person's own machine? Any other program there could listen as well.
    pub fn is_loopback(&self) -> bool {
        self.kind == Kind::Loopback
    }

    /// Where a person would say that it leads: the host, or the scheme of an app.
    pub fn place(&self) -> &str {
        let (scheme, rest) = self.parts();
        match self.kind {
            Kind::Https | Kind::Loopback => authority(rest).unwrap_or_default(),
            Kind::Private => scheme,
        }
    }

    /// The source of a `form-action` policy that lets a form lead there.
    pub fn origin_or_scheme(&self) -> String {
        let (scheme, rest) = self.parts();
        match (self.kind, authority(rest)) {
            // The grammar of policies has no IPv6 addresses.
            (Kind::Https | Kind::Loopback, Some(authority)) if !authority.starts_with('[') => {
                format!("{scheme}://{authority}")
            }
            (Kind::Https | Kind::Loopback | Kind::Private, _) => format!("{scheme}:"),
        }
    }

    /// The address with these fields behind whatever query it has.
    pub fn with(&self, fields: &[(&str, &str)]) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(fields);
        let text = &self.text;
        let joint = match text.split_once('?') {
            None => "?",
            Some((_, before)) if before.is_empty() || before.ends_with('&') => "",
            Some(_) => "&",
        };
        format!("{text}{joint}{}", query.finish())
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

/// Has a scheme the shape of those that apps make up, which contain the name of a domain of theirs?
fn is_private_use(scheme: &str) -> bool {
    let is_name =
        |label: &str| !label.is_empty() && label.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'+'));
    KNOWN_SCHEMES.contains(&scheme)
        || scheme.starts_with(|c: char| c.is_ascii_lowercase())
            && scheme.contains('.')
            && scheme.split('.').all(is_name)
}

/// What stands between `//` and the path.
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
