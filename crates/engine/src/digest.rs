//! What is kept of a secret. A fast hash is enough: every secret that comes here has 256 bits of its own.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

/// SHA-256 of the whole text.
pub(crate) fn of(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

/// The same as 43 base64url characters, which is what PKCE calls S256.
pub(crate) fn text_of(secret: &str) -> String {
    URL_SAFE_NO_PAD.encode(of(secret))
}

/// A text that whoever knows the secret can make, and from which neither the secret nor its other digests follow.
pub(crate) fn labelled(label: &str, secret: &str) -> String {
    text_of(&format!("grabd {label}\n{secret}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_standards() {
        // Appendix B of RFC 7636.
        let challenge = text_of("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
        assert_eq!(challenge, "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        assert_ne!(labelled("csrf", "x"), text_of("x"));
        assert_ne!(labelled("csrf", "x"), labelled("other", "x"));
    }
}
