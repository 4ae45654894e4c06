//! Credentials: API keys, tokens and environments.

mod oauth_scopes;
mod scopes;
mod tokens;

use std::fmt;

use crate::ids::{GrantId, KeyId, TeamId, UserId};

pub use oauth_scopes::{OauthScope, OauthScopes, ScopeError};
pub use scopes::{KeyDaysError, MAX_KEY_DAYS, Scope, Scopes, parse_key_days};
pub(crate) use tokens::is_secret;
pub use tokens::{
    AccessToken, AuthorizationCode, ClientSecret, ConsentToken, DeviceCode, DeviceToken, InviteToken, LinkSecret,
    RefreshToken, ResetToken, SessionToken, VerificationToken,
};

/// The environment of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Environment {
    /// Grabs are rendered by a browser and spend credits.
    Live,
    /// Grabs get free placeholder images.
    Test,
}

impl Environment {
    /// The name in the contract.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Test => "test",
        }
    }

    /// The prefix of keys of this environment.
    pub const fn key_prefix(self) -> &'static str {
        match self {
            Self::Live => "sk_live_",
            Self::Test => "sk_test_",
        }
    }
}

/// A well-formed API key. Only the store knows whether it is valid.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey {
    text: String,
    environment: Environment,
}

impl ApiKey {
    /// Creates a key from 32 random bytes encoded as 43 base64url characters.
    ///
    /// Returns `None` if `secret` is malformed.
    pub fn new(environment: Environment, secret: &str) -> Option<Self> {
        Self::parse(&format!("{}{secret}", environment.key_prefix()))
    }

    /// Parses a key. Returns `None` if it is malformed.
    pub fn parse(text: &str) -> Option<Self> {
        let environment =
            [Environment::Live, Environment::Test].into_iter().find(|e| text.starts_with(e.key_prefix()))?;
        is_secret(&text[environment.key_prefix().len()..]).then(|| Self { text: text.to_owned(), environment })
    }

    /// The environment, from the prefix.
    pub const fn environment(&self) -> Environment {
        self.environment
    }

    /// The secret text, for hashing and for showing it once. Must not be logged.
    pub fn expose(&self) -> &str {
        &self.text
    }

    /// The last four characters, to identify a key in lists.
    pub fn last4(&self) -> &str {
        &self.text[self.text.len() - 4..]
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}…{}", self.environment.key_prefix(), self.last4())
    }
}

/// A bearer credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credential {
    /// An API key of a team.
    Key(ApiKey),
    /// An OAuth access token of an app.
    Token(AccessToken),
}

impl Credential {
    /// Parses a credential. Returns `None` if it is malformed.
    pub fn parse(text: &str) -> Option<Self> {
        ApiKey::parse(text).map(Self::Key).or_else(|| AccessToken::parse(text).map(Self::Token))
    }
}

/// The authenticated principal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Principal {
    /// An API key of a team.
    Key(KeyId),
    /// An app with an OAuth grant.
    Grant(GrantId),
    /// A user who is signed in to the web app.
    User(UserId),
}

impl Principal {
    /// The API key, if it is one.
    pub const fn key(self) -> Option<KeyId> {
        match self {
            Self::Key(key) => Some(key),
            Self::Grant(_) | Self::User(_) => None,
        }
    }

    /// The grant of the app, if it is one.
    pub const fn grant(self) -> Option<GrantId> {
        match self {
            Self::Grant(grant) => Some(grant),
            Self::Key(_) | Self::User(_) => None,
        }
    }

    /// The user, if one is signed in.
    pub const fn user(self) -> Option<UserId> {
        match self {
            Self::User(user) => Some(user),
            Self::Key(_) | Self::Grant(_) => None,
        }
    }
}

/// The authenticated caller. All use cases are scoped to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The team whose data and credits are used.
    pub team: TeamId,
    /// The environment within the team.
    pub environment: Environment,
    /// How the caller was authenticated. The gate has checked the scopes of a key or an app.
    pub principal: Principal,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_key_parse_requires_prefix_and_43_base64url_characters() {
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
    fn credential_parse_accepts_api_keys_and_access_tokens_only() {
        let secret = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJ0123-_9";
        let parse = |prefix: &str| Credential::parse(&format!("{prefix}{secret}"));
        assert!(matches!(parse("sk_live_"), Some(Credential::Key(_))));
        assert!(matches!(parse("gat_"), Some(Credential::Token(_))));
        for prefix in ["grt_", "gac_", "gcs_", "gss_", "gct_", "giv_", "gpr_", "gcl_", "GAT_", ""] {
            assert_eq!(parse(prefix), None, "{prefix} is not a bearer credential");
        }
    }

    #[test]
    fn debug_hides_the_secret() {
        let key = ApiKey::parse("sk_test_abcdefghijklmnopqrstuvwxyzABCDEFGHIJ0123-_9").unwrap();
        assert_eq!(format!("{key:?}"), "sk_test_…3-_9");
    }
}
