//! Verification of Stripe's webhook signatures. The header is `Stripe-Signature: t=<seconds>,v1=<hex>[,v1=<hex>]...`,
//! where each `v1` is the HMAC-SHA256 of `t`, a dot and the body.

use std::time::Duration;

use grabd_domain::Timestamp;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Maximum difference between the signing time and the local clock, in both directions. A recorded event could be
/// replayed within it, which has no effect.
const TOLERANCE: Duration = Duration::from_secs(5 * 60);

/// Why a signature was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SignatureError {
    /// The header is missing.
    #[error("absent")]
    Missing,
    /// The header does not follow the scheme, or has another version.
    #[error("without one time and a v1 signature")]
    Malformed,
    /// No configured secret matches a signature.
    #[error("by no secret that is configured here")]
    Mismatch,
    /// The signing time is outside the tolerance.
    #[error("made more than 5 minutes away from this machine's time")]
    Stale,
}

/// Accepts a body that was signed with one of the secrets, within the tolerance.
pub(super) fn verify(
    header: Option<&str>,
    body: &[u8],
    secrets: &[String],
    now: Timestamp,
) -> Result<(), SignatureError> {
    let SignatureHeader { time, signatures } =
        parse(header.ok_or(SignatureError::Missing)?).ok_or(SignatureError::Malformed)?;
    let is_signed = secrets.iter().any(|secret| {
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC accepts keys of any length");
        for part in [time.as_bytes(), b".", body] {
            mac.update(part);
        }
        // Constant-time comparison.
        signatures.iter().any(|signature| mac.clone().verify_slice(signature).is_ok())
    });
    if !is_signed {
        return Err(SignatureError::Mismatch);
    }
    let at = time.parse::<i64>().ok().and_then(|seconds| seconds.checked_mul(1000)).map(Timestamp::from_ms);
    let at = at.ok_or(SignatureError::Malformed)?;
    match now.since(at).max(at.since(now)) <= TOLERANCE {
        true => Ok(()),
        false => Err(SignatureError::Stale),
    }
}

struct SignatureHeader<'a> {
    /// The original text, which is part of the signed data.
    time: &'a str,
    /// Never empty.
    signatures: Vec<[u8; 32]>,
}

/// Ignores signatures of other versions or lengths. A header with two times is ambiguous and refused.
fn parse(header: &str) -> Option<SignatureHeader<'_>> {
    let mut times = Vec::new();
    let mut signatures = Vec::new();
    for part in header.split(',') {
        match part.trim().split_once('=')? {
            ("t", time) => times.push(time),
            ("v1", signature) => signatures.extend(hex(signature)),
            _ => {}
        }
    }
    let [time] = times[..] else { return None };
    (!signatures.is_empty()).then_some(SignatureHeader { time, signatures })
}

fn hex(text: &str) -> Option<[u8; 32]> {
    let digits: Vec<u8> =
        text.chars().map(|digit| digit.to_digit(16)).map(|digit| digit.map(|d| d as u8)).collect::<Option<_>>()?;
    let (pairs, []) = digits.as_chunks::<2>() else { return None };
    pairs.iter().map(|[high, low]| high << 4 | low).collect::<Vec<u8>>().try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_ms(1_795_206_774_120);
    const T: i64 = 1_795_206_774;
    const BODY: &[u8] = br#"{"id":"evt_1"}"#;
    /// Computed by OpenSSL:
    /// `printf '1795206774.{"id":"evt_1"}' | openssl dgst -sha256 -hmac whsec_of_the_test`.
    const OPENSSL: &str = "0c7a55d49e0597588754a95a380fe91fb67a263b31e4c0292ae384236a4bc3fc";

    fn sign(secret: &str, t: i64, body: &[u8]) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
        mac.update(format!("{t}.").as_bytes());
        mac.update(body);
        mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn check(header: &str) -> Result<(), SignatureError> {
        let secrets = ["whsec_of_the_test".to_owned(), "whsec_the_next".to_owned()];
        verify(Some(header), BODY, &secrets, NOW)
    }

    #[test]
    fn signature_computed_by_openssl_is_accepted() {
        assert_eq!(sign("whsec_of_the_test", T, BODY), OPENSSL);
        assert_eq!(check(&format!("t={T},v1={OPENSSL}")), Ok(()));
    }

    #[test]
    fn only_recent_signatures_of_configured_secrets_are_accepted() {
        use SignatureError::{Malformed, Mismatch, Missing, Stale};
        let valid = |t| sign("whsec_of_the_test", t, BODY);
        let next = sign("whsec_the_next", T, BODY);
        let wrong = sign("whsec_of_another", T, BODY);
        let altered = sign("whsec_of_the_test", T, br#"{"id":"evt_2"}"#);
        for (header, expected) in [
            (format!("t={T},v1={}", valid(T)), Ok(())),
            (format!("t={T}, v1={}", valid(T)), Ok(())),
            (format!("v1={},t={T}", valid(T).to_uppercase()), Ok(())),
            // During a rotation Stripe signs with both secrets, and either is accepted.
            (format!("t={T},v1={next}"), Ok(())),
            (format!("t={T},v1={wrong},v1={}", valid(T)), Ok(())),
            (format!("t={T},v1={},v1={wrong}", valid(T)), Ok(())),
            (format!("t={T},v1=00,v1={},v0=00", valid(T)), Ok(())),
            (format!("t={T},v1={wrong}"), Err(Mismatch)),
            (format!("t={T},v1={altered}"), Err(Mismatch)),
            (format!("t={},v1={}", T + 1, valid(T)), Err(Mismatch)),
            (format!("t={T},v1={}", &valid(T)[..62]), Err(Malformed)),
            (format!("t={T},v1={}", "é".repeat(32)), Err(Malformed)),
            (format!("t={T},v0={}", valid(T)), Err(Malformed)),
            (format!("t={T},v1="), Err(Malformed)),
            (format!("t={T}"), Err(Malformed)),
            (format!("v1={}", valid(T)), Err(Malformed)),
            (format!("t={T},t={},v1={}", T + 1, valid(T)), Err(Malformed)),
            (format!("t=now,v1={}", valid(T)), Err(Mismatch)),
            (valid(T), Err(Malformed)),
            (String::new(), Err(Malformed)),
            // The local clock is at 774.120 s, so the tolerance is from 474.120 s to 1074.120 s.
            (format!("t={},v1={}", T - 299, valid(T - 299)), Ok(())),
            (format!("t={},v1={}", T - 300, valid(T - 300)), Err(Stale)),
            (format!("t={},v1={}", T + 300, valid(T + 300)), Ok(())),
            (format!("t={},v1={}", T + 301, valid(T + 301)), Err(Stale)),
            (format!("t={},v1={}", i64::MAX, valid(i64::MAX)), Err(Malformed)),
        ] {
            assert_eq!(check(&header), expected, "{header}");
        }
        assert_eq!(verify(None, BODY, &["whsec_of_the_test".to_owned()], NOW), Err(Missing));
        assert_eq!(verify(Some(&format!("t={T},v1={}", valid(T))), BODY, &[], NOW), Err(Mismatch));
    }
}
