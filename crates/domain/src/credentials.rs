//! API keys: their format, and the two environments they open.

use std::fmt;

use crate::ids::{KeyId, TeamId};

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
        let secret = &text[environment.key_prefix().len()..];
        let shaped =
            secret.len() == SECRET_CHARS && secret.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        shaped.then(|| Self { text: text.to_owned(), environment })
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

/// Who is calling: what every use-case is scoped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The team whose data and credits are meant.
    pub team: TeamId,
    /// The environment within the team.
    pub environment: Environment,
    /// The key that was presented.
    pub key: KeyId,
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
    fn debug_hides_the_secret() {
        let key = ApiKey::parse("sk_test_abcdefghijklmnopqrstuvwxyzABCDEFGHIJ0123-_9").unwrap();
        assert_eq!(format!("{key:?}"), "sk_test_…3-_9");
    }
}
