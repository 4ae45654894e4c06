//! Proof that whoever exchanges a code is who asked for it (RFC 7636, method S256 alone).

use std::fmt;

/// What an app shows when it asks: the SHA-256 of its verifier as 43 base64url characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge(String);

impl Challenge {
    /// The challenge of a request, whose method must be named and be S256.
    ///
    /// Returns `None` when there is none that could ever be met.
    pub fn parse(challenge: &str, method: Option<&str>) -> Option<Self> {
        let shaped =
            challenge.len() == 43 && challenge.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        (shaped && method == Some("S256")).then(|| Self(challenge.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What the app shows when it exchanges the code: 43 to 128 unreserved characters.
#[derive(Clone, PartialEq, Eq)]
pub struct Verifier(String);

impl Verifier {
    /// The verifier in `text`, when it has the shape of one.
    pub fn parse(text: &str) -> Option<Self> {
        let unreserved = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~');
        ((43..=128).contains(&text.len()) && text.bytes().all(unreserved)).then(|| Self(text.to_owned()))
    }

    /// The text: for hashing, never for a log.
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
    fn only_s256_and_only_what_can_be_met() {
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
    fn a_verifier_is_long_and_plain() {
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
