//! What a caller presents: API keys, tokens, and the two environments they open.

mod tokens;

use std::fmt;

use crate::ids::{GrantId, KeyId, TeamId, UserId};

pub use tokens::{AccessToken, ClientSecret, Code, InviteToken, RefreshToken, ResetToken, SessionToken, Ticket};

/// Which world a key lives in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Environment {
    /// Real renders that spend credits.
    Live,
    /// Free placeholder images.
    Test,
}

impl Environment {
    /// The contract's word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Test => "test",
        }
    }

    /// What a key of this environment begins with.
    pub const fn key_prefix(self) -> &'static str {
        match self {
            Self::Live => "sk_live_",
            Self::Test => "sk_test_",
        }
    }
}

/// Characters after the prefix: 32 bytes as unpadded base64url.
const SECRET_CHARS: usize = 43;

/// Has the text the shape of 256 random bits?
pub(crate) fn is_secret(text: &str) -> bool {
    text.len() == SECRET_CHARS && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

/// The text of an API key whose shape is right. Whether it opens anything only the store knows.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey {
    text: String,
    environment: Environment,
}

impl ApiKey {
    /// A new key around 32 random bytes already written as 43 base64url characters.
    ///
    /// Returns `None` when `secret` is not of that shape.
    pub fn new(environment: Environment, secret: &str) -> Option<Self> {
        Self::parse(&format!("{}{secret}", environment.key_prefix()))
    }

    /// The key in `text`, when it has the shape of one.
    pub fn parse(text: &str) -> Option<Self> {
        let environment =
            [Environment::Live, Environment::Test].into_iter().find(|e| text.starts_with(e.key_prefix()))?;
        is_secret(&text[environment.key_prefix().len()..]).then(|| Self { text: text.to_owned(), environment })
    }

    /// The environment its prefix names.
    pub const fn environment(&self) -> Environment {
        self.environment
    }

    /// The secret text: for hashing and for showing it once, never for a log.
    pub fn expose(&self) -> &str {
        &self.text
    }

    /// The last four characters, by which people tell their keys apart.
    pub fn last4(&self) -> &str {
        &self.text[self.text.len() - 4..]
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}…{}", self.environment.key_prefix(), self.last4())
    }
}

/// What a caller presents as their Bearer token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credential {
    /// A team's own key.
    Key(ApiKey),
    /// What an app has been given for a person.
    Token(AccessToken),
}

impl Credential {
    /// The credential in `text`, when it has the shape of one.
    pub fn parse(text: &str) -> Option<Self> {
        ApiKey::parse(text).map(Self::Key).or_else(|| AccessToken::parse(text).map(Self::Token))
    }
}

/// What stands behind a credential or a session that opened something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Principal {
    /// A team's own key.
    Key(KeyId),
    /// An app that a person has allowed.
    Grant(GrantId),
    /// A person on our own pages, at work in a team of theirs.
    Person(UserId),
}

/// Who is calling: what every use-case is scoped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The team whose data and credits are meant.
    pub team: TeamId,
    /// The environment within the team.
    pub environment: Environment,
    /// What was presented. It changes nothing in what may be done.
    pub principal: Principal,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_a_prefix_and_43_base64url_characters() {
        let secret = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJ0123-_9";
        let key = ApiKey::parse(&format!("sk_live_{secret}")).unwrap();
        assert_eq!(key.environment(), Environment::Live);
        assert_eq!(key.last4(), "3-_9");
        assert_eq!(ApiKey::new(Environment::Test, secret).unwrap().environment(), Environment::Test);
        for text in [
            "",
            "sk_live_",
            "sk_live_short",
            &format!("sk_live_{secret}x"),
            &format!("sk_prod_{secret}"),
            &format!("sk_live_{}+", &secret[..42]),
            &format!("sk_live_{}é", &secret[..41]),
        ] {
            assert!(ApiKey::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_credential_is_a_key_or_an_access_token() {
        let secret = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJ0123-_9";
        let parse = |prefix: &str| Credential::parse(&format!("{prefix}{secret}"));
        assert!(matches!(parse("sk_live_"), Some(Credential::Key(_))));
        assert!(matches!(parse("gat_"), Some(Credential::Token(_))));
        for prefix in ["grt_", "gac_", "gcs_", "gss_", "gct_", "giv_", "gpr_", "gcl_", "GAT_", ""] {
            assert_eq!(parse(prefix), None, "{prefix} opens no door");
        }
    }

    #[test]
    fn debug_hides_the_secret() {
        let key = ApiKey::parse("sk_test_abcdefghijklmnopqrstuvwxyzABCDEFGHIJ0123-_9").unwrap();
        assert_eq!(format!("{key:?}"), "sk_test_…3-_9");
    }
}
