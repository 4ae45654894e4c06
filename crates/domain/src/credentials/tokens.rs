//! Secrets that the service draws: a prefix that says what for, and 256 random bits.

use std::fmt;

use super::is_secret;

macro_rules! token {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq)]
        pub struct $name(String);

        impl $name {
            /// What it begins with.
            pub const PREFIX: &'static str = $prefix;

            /// A new one around 32 random bytes already written as 43 base64url characters.
            ///
            /// Returns `None` when `secret` is not of that shape.
            pub fn new(secret: &str) -> Option<Self> {
                Self::parse(&format!("{}{secret}", Self::PREFIX))
            }

            /// The one in `text`, when it has the shape of one.
            pub fn parse(text: &str) -> Option<Self> {
                text.strip_prefix(Self::PREFIX).is_some_and(is_secret).then(|| Self(text.to_owned()))
            }

            /// The secret text: for hashing and for handing it out once, never for a log.
            pub fn expose(&self) -> &str {
                &self.0
            }
        }

        /// Prefix and last four characters, by which people tell them apart.
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}…{}", Self::PREFIX, &self.0[self.0.len() - 4..])
            }
        }
    };
}

token! {
    /// Opens the API for an app, for a short time.
    AccessToken, "gat_"
}
token! {
    /// Gets an app its next pair of tokens, once.
    RefreshToken, "grt_"
}
token! {
    /// Carries a person's consent to the app, which exchanges it once.
    Code, "gac_"
}
token! {
    /// Proves that an app is the one that was registered.
    ClientSecret, "gcs_"
}
token! {
    /// Says who sits in front of the browser.
    SessionToken, "gss_"
}
token! {
    /// Stands in a consent form for the request that was shown.
    Ticket, "gct_"
}
token! {
    /// Lets whoever was invited into a team come in, once.
    InviteToken, "giv_"
}
token! {
    /// Lets whoever forgot their password choose another one, once.
    ResetToken, "gpr_"
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJ0123-_9";

    #[test]
    fn a_token_is_its_prefix_and_43_base64url_characters() {
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
        for (prefix, is_one) in [
            ("grt_", RefreshToken::new(SECRET).is_some()),
            ("gac_", Code::parse(&format!("gac_{SECRET}")).is_some()),
            ("gcs_", ClientSecret::parse(&format!("gcs_{SECRET}")).is_some()),
            ("gss_", SessionToken::parse(&format!("gss_{SECRET}")).is_some()),
            ("gct_", Ticket::parse(&format!("gct_{SECRET}")).is_some()),
            ("giv_", InviteToken::parse(&format!("giv_{SECRET}")).is_some()),
            ("gpr_", ResetToken::parse(&format!("gpr_{SECRET}")).is_some()),
        ] {
            assert!(is_one, "{prefix}");
        }
    }

    #[test]
    fn debug_hides_the_secret() {
        assert_eq!(format!("{:?}", RefreshToken::new(SECRET).unwrap()), "grt_…3-_9");
        assert_eq!(format!("{:?}", Some(SessionToken::new(SECRET).unwrap())), "Some(gss_…3-_9)");
    }
}
