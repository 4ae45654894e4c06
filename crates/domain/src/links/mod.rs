//! Signed links: a URL that captures a page and leads to its image. It can be published, since it allows nothing else.
//!
//! The signature is the HMAC-SHA256 of the query as it is sent, up to `&sig=`, with the secret of an API key's links.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use grabd_options::{CaptureRequest, HIDDEN, LinkBar, TABLE};
use url::form_urlencoded;
use uuid::Uuid;

use crate::faults::{Fault, Field, LinkRefusal};
use crate::ids::KeyId;
use crate::timestamp::Timestamp;

/// The most bytes of a query. URLs may have 4096, which escaping makes longer.
pub const QUERY_BYTES: usize = 16 << 10;
/// How far in the future a link may expire.
pub const LIFE: Duration = Duration::from_secs(366 * 24 * 60 * 60);
/// The largest age of an earlier image, unless the link says otherwise, in seconds.
pub const DEFAULT_MAX_AGE_S: i64 = 24 * 60 * 60;

/// What is between the signed part of a query and the signature.
const SIGNATURE: &str = "&sig=";
const SIGNATURE_CHARS: usize = 64;
/// The largest number of seconds that can be converted to a time.
const MAX_SECONDS: i64 = 253_402_300_799;

/// The public name of an API key in links: `lk_` and its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkKey(pub KeyId);

impl LinkKey {
    const PREFIX: &str = "lk_";

    /// Parses the form that `Display` prints.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(Self::PREFIX).filter(|digits| digits.len() == 32)?;
        let is_lower_hex = digits.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        is_lower_hex.then(|| Uuid::try_parse(digits).ok().map(|id| Self(KeyId(id)))).flatten()
    }
}

impl fmt::Display for LinkKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", Self::PREFIX, self.0.0.simple())
    }
}

/// A query with a signature, which is not verified yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignedQuery<'a> {
    /// What was signed, as it was sent.
    pub signed: &'a str,
    /// Whose secret signed it.
    pub key: LinkKey,
    /// The signature.
    pub signature: [u8; 32],
}

impl<'a> SignedQuery<'a> {
    /// Splits a query. The signature is its last member.
    ///
    /// # Errors
    /// [`Fault::BadRequest`] if the query is too long, and [`Fault::LinkRefused`] without a well-formed key and
    /// signature.
    pub fn parse(query: &'a str) -> Result<Self, Fault> {
        if query.len() > QUERY_BYTES {
            let seen = format!("{} bytes", query.len());
            return Err(Fault::BadRequest(Field::new("query", &seen, format!("at most {QUERY_BYTES} bytes long"))));
        }
        Self::split(query).ok_or(Fault::LinkRefused(LinkRefusal::Signature))
    }

    fn split(query: &'a str) -> Option<Self> {
        let (signed, signature) = query.rsplit_once(SIGNATURE)?;
        let mut keys = form_urlencoded::parse(signed.as_bytes()).filter(|(name, _)| name == "key");
        let (_, key) = keys.next()?;
        Some(Self { signed, key: LinkKey::parse(&key)?, signature: read_signature(signature)? })
    }

    /// Reads the members, after the signature was verified. Options are not checked yet: those that cannot be read are
    /// in `unparsed` of the request.
    ///
    /// # Errors
    /// [`Fault::LinkRefused`] if the link has expired, and [`Fault::BadRequest`] for the first member that links cannot
    /// have.
    pub fn read(&self, now: Timestamp) -> Result<Link, Fault> {
        let mut capture = CaptureRequest::default();
        let (mut names, mut expires) = (BTreeSet::new(), None);
        let pairs: Vec<_> = form_urlencoded::parse(self.signed.as_bytes()).collect();
        for (name, text) in &pairs {
            if name == "expires" {
                expires = Some(read_expiry(text, now)?);
            }
        }
        let expires_at = expires.ok_or_else(|| Fault::BadRequest(expiry_field("")))?;
        for (name, text) in &pairs {
            let known = known(name).ok_or_else(|| {
                let allowed = "made of `key`, `url`, capture options, `expires`, `on_error` and, as its end, `sig`";
                Fault::BadRequest(Field::new("query", &format!("\"{name}\""), allowed))
            })?;
            if !names.insert(known) {
                return Err(Fault::BadRequest(Field::new(known, "it more than once", "given once")));
            }
            match known {
                "key" | "expires" => {}
                "on_error" if text == "placeholder" => {}
                "on_error" => {
                    let seen = format!("\"{text}\"");
                    return Err(Fault::BadRequest(Field::new("on_error", &seen, "left out, or `placeholder`")));
                }
                option => read_option(option, text, &mut capture)?,
            }
        }
        capture.max_age = capture.max_age.or_else(|| (!names.contains("max_age")).then_some(DEFAULT_MAX_AGE_S));
        Ok(Link { capture, expires_at })
    }
}

/// What a link asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// What to capture. The options are not checked yet.
    pub capture: CaptureRequest,
    /// When the link expires.
    pub expires_at: Timestamp,
}

impl Link {
    /// How long the answer may be stored by others: until the image is too old, and until the link expires.
    pub fn fresh_for(&self, max_age: Duration, captured_at: Timestamp, now: Timestamp) -> Duration {
        let age = now.since(captured_at);
        max_age.saturating_sub(age).min(self.expires_at.since(now))
    }
}

/// The name of a member, if links can have it.
fn known(name: &str) -> Option<&'static str> {
    let others = ["key", "expires", "on_error"];
    let mut names = TABLE.iter().map(|option| option.name).chain(others);
    names.find(|known| *known == name)
}

fn read_option(name: &'static str, text: &str, capture: &mut CaptureRequest) -> Result<(), Fault> {
    let Some(option) = grabd_options::find(name) else { return Ok(()) };
    match option.refused_in_links() {
        Some(LinkBar::Published) => {
            let allowed = "left out of links, which are made to be published";
            return Err(Fault::BadRequest(Field::new(name, HIDDEN, allowed)));
        }
        Some(LinkBar::OnlyImage) => {
            let allowed = "left out of links, whose answer is only an image";
            return Err(Fault::BadRequest(Field::new(name, &format!("\"{text}\""), allowed)));
        }
        None => {}
    }
    match option.kind.parse(text) {
        Some(value) => _ = capture.set(name, value),
        None => capture.unparsed.push((name.to_owned(), format!("\"{text}\""))),
    }
    Ok(())
}

fn read_expiry(text: &str, now: Timestamp) -> Result<Timestamp, Fault> {
    let seconds = text.parse::<i64>().ok().filter(|seconds| (0..=MAX_SECONDS).contains(seconds));
    let expires_at = seconds.map(|seconds| Timestamp::from_ms(seconds * 1000));
    let expires_at = expires_at.ok_or_else(|| Fault::BadRequest(expiry_field(text)))?;
    if expires_at <= now {
        return Err(Fault::LinkRefused(LinkRefusal::Expired(expires_at)));
    }
    if expires_at > now + LIFE {
        return Err(Fault::BadRequest(expiry_field(text)));
    }
    Ok(expires_at)
}

fn expiry_field(seen: &str) -> Field {
    let days = LIFE.as_secs() / (24 * 60 * 60);
    Field::new("expires", seen, format!("a time in seconds since 1970, at most {days} days from now"))
}

fn read_signature(text: &str) -> Option<[u8; 32]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let digits: Vec<u8> = text.bytes().map(digit).collect::<Option<_>>()?;
    if digits.len() != SIGNATURE_CHARS {
        return None;
    }
    let bytes: Option<Vec<u8>> = digits
        .chunks_exact(2)
        .map(|pair| match pair {
            [high, low] => Some(high * 16 + low),
            _ => None,
        })
        .collect();
    bytes?.try_into().ok()
}

#[cfg(test)]
mod tests;
