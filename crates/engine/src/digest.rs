//! Hashes of secrets for storage. A fast hash is enough, since every secret hashed here has 256 random bits, or 80 if
//! users type it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

/// SHA-256 of the text.
pub(crate) fn of(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

/// SHA-256 of the text as 43 base64url characters: the S256 method of PKCE (RFC 7636).
pub(crate) fn base64url_of(secret: &str) -> String {
    URL_SAFE_NO_PAD.encode(of(secret))
}

/// Derives a token from a secret. It reveals neither the secret nor tokens with other labels.
pub(crate) fn derive(label: &str, secret: &str) -> String {
    base64url_of(&format!("grabd {label}\n{secret}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_match_the_rfc_7636_example() {
        // Appendix B of RFC 7636.
        let challenge = base64url_of("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
        assert_eq!(challenge, "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        assert_ne!(derive("csrf", "x"), base64url_of("x"));
        assert_ne!(derive("csrf", "x"), derive("other", "x"));
    }
}
