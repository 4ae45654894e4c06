//! Generated secrets: a prefix for the purpose and 256 random bits.

use std::fmt;

/// Length of the secret after the prefix: 32 bytes as unpadded base64url.
const SECRET_CHARS: usize = 43;

/// Returns whether the text has the format of 256 bits in unpadded base64url.
pub(crate) fn is_secret(text: &str) -> bool {
    text.len() == SECRET_CHARS && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

macro_rules! token {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq)]
        pub struct $name(String);

        impl $name {
            /// The prefix of this kind of token.
            pub const PREFIX: &'static str = $prefix;

            /// Creates a token from 32 random bytes encoded as 43 base64url characters.
            ///
            /// Returns `None` if `secret` is malformed.
            pub fn new(secret: &str) -> Option<Self> {
                Self::parse(&format!("{}{secret}", Self::PREFIX))
            }

            /// Parses a token. Returns `None` if it is malformed.
            pub fn parse(text: &str) -> Option<Self> {
                text.strip_prefix(Self::PREFIX).is_some_and(is_secret).then(|| Self(text.to_owned()))
            }

            /// The secret text, for hashing and for handing it out once. Must not be logged.
            pub fn expose(&self) -> &str {
                &self.0
            }
        }

        /// Shows only the prefix and the last four characters.
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}…{}", Self::PREFIX, &self.0[self.0.len() - 4..])
            }
        }
    };
}

token! {
    /// Short-lived OAuth access token for the API.
    AccessToken, "gat_"
}
token! {
    /// OAuth refresh token. It is exchanged once for the next pair of tokens.
    RefreshToken, "grt_"
}
token! {
    /// Signs links of an API key.
    LinkSecret, "gls_"
}
token! {
    /// OAuth authorization code. The app exchanges it once for tokens.
    AuthorizationCode, "gac_"
}
token! {
    /// OAuth device code. The app that asked for it exchanges it once for tokens, after a user has allowed it.
    DeviceCode, "gdc_"
}
token! {
    /// Authenticates a registered OAuth client.
    ClientSecret, "gcs_"
}
token! {
    /// Identifies a web session.
    SessionToken, "gss_"
}
token! {
    /// Identifies the displayed authorization request in a consent form.
    ConsentToken, "gct_"
}
token! {
    /// Accepts an invitation to a team, once.
    InviteToken, "giv_"
}
token! {
    /// Allows resetting a forgotten password, once.
    ResetToken, "gpr_"
}
token! {
    /// Proves that a user reads the mail of an address, once.
    VerificationToken, "gev_"
}
token! {
    /// Identifies a browser that somebody has signed in with. It does not sign in by itself.
    DeviceToken, "gdv_"
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJ0123-_9";

    #[test]
    fn token_parse_requires_prefix_and_43_base64url_characters() {
        let text = format!("gat_{SECRET}");
        assert_eq!(AccessToken::parse(&text).unwrap().expose(), text);
        assert_eq!(AccessToken::new(SECRET), AccessToken::parse(&text));
        for text in [
            "",
            "gat_",
            SECRET,
            &format!("grt_{SECRET}"),
            &format!(" gat_{SECRET}"),
            &format!("gat_{SECRET}x"),
            &format!("gat_{}", &SECRET[1..]),
            &format!("gat_{}=", &SECRET[1..]),
            &format!("gat_{}é", &SECRET[2..]),
        ] {
            assert_eq!(AccessToken::parse(text), None, "{text}");
        }
        for (prefix, parses) in [
            ("grt_", RefreshToken::new(SECRET).is_some()),
            ("gac_", AuthorizationCode::parse(&format!("gac_{SECRET}")).is_some()),
            ("gcs_", ClientSecret::parse(&format!("gcs_{SECRET}")).is_some()),
            ("gss_", SessionToken::parse(&format!("gss_{SECRET}")).is_some()),
            ("gct_", ConsentToken::parse(&format!("gct_{SECRET}")).is_some()),
            ("giv_", InviteToken::parse(&format!("giv_{SECRET}")).is_some()),
            ("gpr_", ResetToken::parse(&format!("gpr_{SECRET}")).is_some()),
            ("gev_", VerificationToken::parse(&format!("gev_{SECRET}")).is_some()),
            ("gdv_", DeviceToken::parse(&format!("gdv_{SECRET}")).is_some()),
        ] {
            assert!(parses, "{prefix}");
        }
    }

    #[test]
    fn debug_hides_the_secret() {
        assert_eq!(format!("{:?}", RefreshToken::new(SECRET).unwrap()), "grt_…3-_9");
        assert_eq!(format!("{:?}", Some(SessionToken::new(SECRET).unwrap())), "Some(gss_…3-_9)");
    }
}
