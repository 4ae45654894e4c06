//! OAuth clients: client ids and client metadata, from registration or a metadata document.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::RedirectUri;
use crate::credentials;
use crate::target::TargetUrl;

/// Maximum number of redirect URIs per client.
const MAX_REDIRECTS: usize = 10;
/// Maximum length of a client name, in characters.
const NAME_CHARS: usize = 100;
/// Name of a client that does not provide one.
const DEFAULT_NAME: &str = "An app without a name";
/// Maximum size of a metadata document in bytes.
pub const DOCUMENT_BYTES: usize = 5 << 10;
/// Time limit for fetching a metadata document.
pub const DOCUMENT_TIMEOUT: Duration = Duration::from_secs(3);
/// Bounds for the cache lifetime of a metadata document, whatever its server specifies.
pub const DOCUMENT_LIFE: RangeInclusive<Duration> = Duration::from_secs(5 * 60)..=Duration::from_secs(24 * 60 * 60);

/// A client id. Not a secret.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ClientId {
    /// The id of a registered client.
    Registered(String),
    /// The URL of a client metadata document.
    Document(DocumentUrl),
}

impl ClientId {
    const PREFIX: &'static str = "gcl_";

    /// Creates the id of a new registration from 43 random base64url characters.
    pub fn new(random: &str) -> Option<Self> {
        Self::parse(&format!("{}{random}", Self::PREFIX))
    }

    /// Parses a client id. Returns `None` if it is malformed.
    pub fn parse(text: &str) -> Option<Self> {
        match text.strip_prefix(Self::PREFIX) {
            Some(random) => credentials::is_secret(random).then(|| Self::Registered(text.to_owned())),
            None => DocumentUrl::parse(text).map(Self::Document),
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Registered(text) => text,
            Self::Document(url) => url.as_str(),
        }
    }
}

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The URL of a client metadata document. It identifies the client, so only the normalized form is accepted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DocumentUrl(String);

impl DocumentUrl {
    /// Parses the URL: normalized https with a path, without query, fragment and user info.
    pub fn parse(text: &str) -> Option<Self> {
        let url = TargetUrl::parse(text).ok().filter(TargetUrl::is_https)?;
        let path = text.strip_prefix("https://").and_then(|rest| rest.split_once('/')).map(|(_, path)| path)?;
        let is_normal = url.as_str() == text && !text.contains(['?', '#', '@']);
        (is_normal && !path.is_empty()).then(|| Self(text.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The URL as a target for the egress guard.
    pub fn target(&self) -> TargetUrl {
        TargetUrl::restore(&self.0).expect("validated by parse")
    }

    /// The host: the only verified information about the client.
    pub fn host(&self) -> String {
        self.target().host().to_string()
    }
}

/// How a client authenticates at the token endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AuthMethod {
    /// No authentication: a public client.
    None,
    /// Client secret in the `Authorization` field.
    Basic,
    /// Client secret in the form.
    Post,
}

impl AuthMethod {
    /// All methods.
    pub const ALL: [Self; 3] = [Self::None, Self::Basic, Self::Post];

    /// The name in RFC 7591.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Basic => "client_secret_basic",
            Self::Post => "client_secret_post",
        }
    }

    /// Parses the name in RFC 7591.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.as_str() == word)
    }
}

/// Unvalidated client metadata.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "the names are those of RFC 7591")]
pub struct RawMetadata {
    pub client_name: Option<String>,
    pub redirect_uris: Vec<String>,
    pub grant_types: Option<Vec<String>>,
    pub response_types: Option<Vec<String>>,
    pub token_endpoint_auth_method: Option<String>,
}

/// Valid client metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientMetadata {
    /// The client's name. Unverified: display as text, do not trust.
    pub name: String,
    /// Allowed redirect URIs.
    pub redirect_uris: Vec<RedirectUri>,
    /// Authentication method.
    pub auth_method: AuthMethod,
}

/// Invalid client metadata, with a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetadataError {
    /// Invalid redirect URIs.
    #[error("{0}")]
    RedirectUri(String),
    /// Any other invalid member.
    #[error("{0}")]
    Other(String),
}

impl ClientMetadata {
    /// Validates client metadata (RFC 7591 section 2).
    ///
    /// # Errors
    /// The first invalid member.
    pub fn parse(raw: &RawMetadata) -> Result<Self, MetadataError> {
        let other = |text: String| Err(MetadataError::Other(text));
        let redirect_uris = redirect_uris(&raw.redirect_uris)?;
        let name = raw.client_name.as_deref().map_or(DEFAULT_NAME, str::trim);
        if name.is_empty() || name.chars().count() > NAME_CHARS || name.chars().any(is_deceptive) {
            return other(format!("`client_name` must have 1 to {NAME_CHARS} visible characters."));
        }
        let lacks = |words: &Option<Vec<String>>, word: &str| {
            words.as_ref().is_some_and(|words| !words.iter().any(|w| w == word))
        };
        if lacks(&raw.grant_types, "authorization_code") {
            return other("`grant_types` must contain authorization_code.".to_owned());
        }
        if lacks(&raw.response_types, "code") {
            return other("`response_types` must contain code.".to_owned());
        }
        let method = raw.token_endpoint_auth_method.as_deref();
        let Some(auth_method) = method.map_or(Some(AuthMethod::Basic), AuthMethod::parse) else {
            let known = AuthMethod::ALL.map(AuthMethod::as_str).join(", ");
            return other(format!("`token_endpoint_auth_method` must be one of {known}."));
        };
        Ok(Self { name: name.to_owned(), redirect_uris, auth_method })
    }
}

fn redirect_uris(texts: &[String]) -> Result<Vec<RedirectUri>, MetadataError> {
    if !(1..=MAX_REDIRECTS).contains(&texts.len()) {
        let seen = texts.len();
        return Err(MetadataError::RedirectUri(format!(
            "`redirect_uris` must have 1 to {MAX_REDIRECTS} members; got {seen}."
        )));
    }
    let parse = |text: &String| {
        RedirectUri::parse(text)
            .map_err(|error| MetadataError::RedirectUri(format!("Each of `redirect_uris` {error}.")))
    };
    texts.iter().map(parse).collect()
}

/// Returns whether the character is invisible or changes how adjacent characters are displayed.
fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
