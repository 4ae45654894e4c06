//! Apps: how they are named, and what they say of themselves when they register or by a document of theirs.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::RedirectUri;
use crate::credentials;
use crate::target::TargetUrl;

/// Most addresses of one app.
const MAX_REDIRECTS: usize = 10;
/// Most characters of an app's name.
const NAME_CHARS: usize = 100;
/// What an app is called that does not say.
const NAMELESS: &str = "An app without a name";
/// Most bytes of a metadata document.
pub const DOCUMENT_BYTES: usize = 5 << 10;
/// How long a metadata document may take.
pub const DOCUMENT_LIMIT: Duration = Duration::from_secs(3);
/// How long a metadata document is remembered, within what its server says.
pub const DOCUMENT_LIFE: RangeInclusive<Duration> = Duration::from_secs(5 * 60)..=Duration::from_secs(24 * 60 * 60);

/// Which app. Not a secret.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ClientId {
    /// One that has registered here.
    Registered(String),
    /// One that describes itself at an address of its own.
    Document(DocumentUrl),
}

impl ClientId {
    const PREFIX: &'static str = "gcl_";

    /// The id of a new registration, around 43 random base64url characters.
    pub fn new(random: &str) -> Option<Self> {
        Self::parse(&format!("{}{random}", Self::PREFIX))
    }

    /// The id in `text`, when it has the shape of one.
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

/// The address of a metadata document, exactly as it was written: it is the app's name, so it has one form only.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DocumentUrl(String);

impl DocumentUrl {
    /// The address in `text`: https with a path, without anything that could make two of one.
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

    /// As what the guard lets one visit.
    pub fn target(&self) -> TargetUrl {
        TargetUrl::restore(&self.0).expect("it was parsed before")
    }

    /// The host, which is all that is known for sure about who the app is.
    pub fn host(&self) -> String {
        self.target().host().to_string()
    }
}

/// How an app proves at the token endpoint that it is who it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AuthMethod {
    /// Not at all: it runs where it cannot keep a secret.
    None,
    /// With its secret in the `Authorization` field.
    Basic,
    /// With its secret in the form.
    Post,
}

impl AuthMethod {
    /// Every method.
    pub const ALL: [Self; 3] = [Self::None, Self::Basic, Self::Post];

    /// The wire word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Basic => "client_secret_basic",
            Self::Post => "client_secret_post",
        }
    }

    /// The method behind a wire word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.as_str() == word)
    }
}

/// What an app says of itself, not judged yet.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "the names are those of RFC 7591")]
pub struct RawMetadata {
    pub client_name: Option<String>,
    pub redirect_uris: Vec<String>,
    pub grant_types: Option<Vec<String>>,
    pub response_types: Option<Vec<String>>,
    pub token_endpoint_auth_method: Option<String>,
}

/// What an app says of itself and may say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientMetadata {
    /// What it is called. Its own words: to be shown as text and never believed.
    pub name: String,
    /// Where answers may be sent.
    pub redirect_uris: Vec<RedirectUri>,
    /// How it proves who it is.
    pub auth_method: AuthMethod,
}

/// Why an app cannot be let in, with the sentence that says so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetadataError {
    /// Of one of its addresses.
    #[error("{0}")]
    RedirectUri(String),
    /// Of anything else.
    #[error("{0}")]
    Other(String),
}

impl ClientMetadata {
    /// Judges what an app says (RFC 7591 section 2).
    ///
    /// # Errors
    /// The first thing that cannot be.
    pub fn parse(raw: &RawMetadata) -> Result<Self, MetadataError> {
        let other = |text: String| Err(MetadataError::Other(text));
        let redirect_uris = redirect_uris(&raw.redirect_uris)?;
        let name = raw.client_name.as_deref().map_or(NAMELESS, str::trim);
        if name.is_empty() || name.chars().count() > NAME_CHARS || name.chars().any(is_unshowable) {
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

/// Characters that are not seen, or that change how those around them are.
fn is_unshowable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
