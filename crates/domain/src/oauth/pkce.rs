//! PKCE: proves that a code is exchanged by the client that requested it (RFC 7636, only method S256).

use std::fmt;

/// The code challenge: the SHA-256 of the verifier as 43 base64url characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge(String);

impl Challenge {
    /// Parses the challenge of an authorization request. The method is required and must be S256.
    ///
    /// Returns `None` if the challenge is malformed or the method is not S256.
    pub fn parse(challenge: &str, method: Option<&str>) -> Option<Self> {
        let well_formed =
            challenge.len() == 43 && challenge.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        (well_formed && method == Some("S256")).then(|| Self(challenge.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The code verifier: 43 to 128 unreserved characters.
#[derive(Clone, PartialEq, Eq)]
pub struct Verifier(String);

impl Verifier {
    /// Parses a verifier. Returns `None` if it is malformed.
    pub fn parse(text: &str) -> Option<Self> {
        let unreserved = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~');
        ((43..=128).contains(&text.len()) && text.bytes().all(unreserved)).then(|| Self(text.to_owned()))
    }

    /// The text, for hashing. Must not be logged.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Verifier(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Appendix B of RFC 7636.
    const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
    const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";

    #[test]
    fn challenge_parse_requires_s256_and_a_valid_digest() {
        for (challenge, method, good) in [
            (CHALLENGE, Some("S256"), true),
            (CHALLENGE, None, false),
            (CHALLENGE, Some("plain"), false),
            (CHALLENGE, Some("s256"), false),
            (CHALLENGE, Some(""), false),
            ("", Some("S256"), false),
            (&CHALLENGE[1..], Some("S256"), false),
            (&format!("{CHALLENGE}="), Some("S256"), false),
            (&CHALLENGE.replace('-', "+"), Some("S256"), false),
            (&CHALLENGE.replacen('E', "é", 1)[..43], Some("S256"), false),
        ] {
            assert_eq!(Challenge::parse(challenge, method).is_some(), good, "{challenge} {method:?}");
        }
    }

    #[test]
    fn verifier_parse_checks_length_and_characters() {
        for (text, good) in [
            (VERIFIER, true),
            (&"~".repeat(128), true),
            (&VERIFIER[1..], false),
            (&"~".repeat(129), false),
            (&format!("{VERIFIER} "), false),
            (&format!("{VERIFIER}+"), false),
            ("", false),
        ] {
            assert_eq!(Verifier::parse(text).is_some(), good, "{text}");
        }
        assert!(!format!("{:?}", Verifier::parse(VERIFIER)).contains("dBjft"));
    }
}
