//! Codes of authenticator apps: time-based one-time passwords (RFC 6238) with the values that all apps support: SHA-1, 6
//! digits and steps of 30 seconds. What SHA-1 lacks does not matter to HMAC.

use data_encoding::BASE32_NOPAD;
use grabd_domain::Timestamp;
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use url::form_urlencoded::byte_serialize;

/// Length of a secret in bytes. RFC 4226 section 4 recommends 160 bits.
pub(super) const SECRET_BYTES: usize = 20;
/// Digits of a code.
pub(super) const DIGITS: usize = 6;

const STEP_MS: i64 = 30_000;
/// Accepted steps before and after the current one, for clocks that differ and codes that are typed slowly.
const TOLERANCE: i64 = 1;
const MODULUS: u32 = 10_u32.pow(DIGITS as u32);

/// The steps around `now` whose code is `code`, in order. Two steps have the same code once in a million times.
pub(super) fn matching_steps(secret: &[u8], code: u32, now: Timestamp) -> Vec<i64> {
    let current = now.as_ms().div_euclid(STEP_MS);
    let steps = current - TOLERANCE..=current + TOLERANCE;
    steps.filter(|step| hotp(secret, *step) % MODULUS == code).collect()
}

/// The 31 bits of which RFC 4226 section 5.3 takes the last digits.
fn hotp(secret: &[u8], counter: i64) -> u32 {
    let mut mac = <Hmac<Sha1> as KeyInit>::new_from_slice(secret).expect("HMAC accepts keys of any length");
    mac.update(&counter.to_be_bytes());
    let digest = mac.finalize().into_bytes();
    let offset = usize::from(digest[digest.len() - 1] & 0xf);
    let bytes: [u8; 4] = digest[offset..offset + 4].try_into().expect("the offset is at most 15 of 20 bytes");
    u32::from_be_bytes(bytes) & 0x7fff_ffff
}

/// The secret as users type it.
pub(super) fn secret_text(secret: &[u8]) -> String {
    BASE32_NOPAD.encode(secret)
}

/// The URI that a QR code contains for authenticator apps: the "Key Uri Format" of Google Authenticator, which other apps
/// have adopted. `issuer` must not contain a colon.
pub(super) fn uri(secret: &[u8], issuer: &str, account: &str) -> String {
    let [issuer, account] = [issuer, account].map(percent_encoded);
    format!("otpauth://totp/{issuer}:{account}?secret={}&issuer={issuer}", secret_text(secret))
}

/// Apps show a `+` as it is.
fn percent_encoded(text: &str) -> String {
    byte_serialize(text.as_bytes()).collect::<String>().replace('+', "%20")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The secret of the test vectors: 20 bytes of ASCII digits.
    const SECRET: &[u8] = b"12345678901234567890";

    #[test]
    fn codes_match_the_test_vectors_of_rfc_6238() {
        // Appendix B, the rows of SHA-1. The vectors have eight digits.
        for (seconds, code) in [
            (59, 94_287_082),
            (1_111_111_109, 7_081_804),
            (1_111_111_111, 14_050_471),
            (1_234_567_890, 89_005_924),
            (2_000_000_000, 69_279_037),
            (20_000_000_000, 65_353_130),
        ] {
            let step = seconds * 1000 / STEP_MS;
            assert_eq!(hotp(SECRET, step) % 100_000_000, code, "{seconds}");
            let now = Timestamp::from_ms(seconds * 1000);
            assert_eq!(matching_steps(SECRET, code % MODULUS, now), [step], "{seconds}");
        }
    }

    #[test]
    fn codes_match_the_test_vectors_of_rfc_4226() {
        // Appendix D.
        let expected = [755_224, 287_082, 359_152, 969_429, 338_314, 254_676, 287_922, 162_583, 399_871, 520_489];
        let codes: Vec<u32> = (0..10).map(|counter| hotp(SECRET, counter) % MODULUS).collect();
        assert_eq!(codes, expected);
    }

    #[test]
    fn code_is_accepted_one_step_before_and_after_its_own() {
        let step = 1000;
        let code = hotp(SECRET, step) % MODULUS;
        let matches = |now_ms| !matching_steps(SECRET, code, Timestamp::from_ms(now_ms)).is_empty();
        let (first, last) = ((step - 1) * STEP_MS, (step + 2) * STEP_MS - 1);
        assert_eq!([first - 1, first, last, last + 1].map(matches), [false, true, true, false]);
    }

    #[test]
    fn uri_names_issuer_and_account() {
        assert_eq!(
            uri(SECRET, "grabd shots.example.com", "a+b@example.com"),
            "otpauth://totp/grabd%20shots.example.com:a%2Bb%40example.com\
             ?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=grabd%20shots.example.com"
        );
    }
}
