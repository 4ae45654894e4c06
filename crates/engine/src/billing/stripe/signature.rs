//! Was it Stripe who sent this, and just now? `Stripe-Signature: t=<seconds>,v1=<hex>[,v1=<hex>]…`, where each `v1` is the
//! HMAC-SHA256 of `t`, a dot and the body.

use std::time::Duration;

use grabd_domain::Timestamp;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// How far the time of signing may be from ours, in both directions. Within it a recorded event could be sent again,
/// which grants nothing.
const TOLERANCE: Duration = Duration::from_secs(5 * 60);

/// Why an event is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unbelievable {
    /// There is no header.
    #[error("absent")]
    Missing,
    /// It is not what the scheme describes, or of another version.
    #[error("without one time and a v1 signature")]
    Malformed,
    /// No secret of ours made any of the signatures.
    #[error("by no secret that is configured here")]
    Forged,
    /// It was signed too long ago, or in the future.
    #[error("made more than 5 minutes away from this machine's time")]
    Stale,
}

/// Believes a body that one of the secrets has signed within the tolerance.
pub(super) fn verify(
    header: Option<&str>,
    body: &[u8],
    secrets: &[String],
    now: Timestamp,
) -> Result<(), Unbelievable> {
    let Parts { time, signatures } = read(header.ok_or(Unbelievable::Missing)?).ok_or(Unbelievable::Malformed)?;
    let signed = secrets.iter().any(|secret| {
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("a key of any length will do");
        for part in [time.as_bytes(), b".", body] {
            mac.update(part);
        }
        // The comparison takes the same time wherever the two differ.
        signatures.iter().any(|signature| mac.clone().verify_slice(signature).is_ok())
    });
    if !signed {
        return Err(Unbelievable::Forged);
    }
    let at = time.parse::<i64>().ok().and_then(|seconds| seconds.checked_mul(1000)).map(Timestamp::from_ms);
    let at = at.ok_or(Unbelievable::Malformed)?;
    match now.since(at).max(at.since(now)) <= TOLERANCE {
        true => Ok(()),
        false => Err(Unbelievable::Stale),
    }
}

struct Parts<'a> {
    /// As it was written, since so it was signed.
    time: &'a str,
    /// Never empty.
    signatures: Vec<[u8; 32]>,
}

/// What is of another version, or no signature by its length, is passed over. Two times would leave open which is meant.
fn read(header: &str) -> Option<Parts<'_>> {
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
    (!signatures.is_empty()).then_some(Parts { time, signatures })
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

    fn judge(header: &str) -> Result<(), Unbelievable> {
        let secrets = ["whsec_of_the_test".to_owned(), "whsec_the_next".to_owned()];
        verify(Some(header), BODY, &secrets, NOW)
    }

    #[test]
    fn the_scheme_is_openssls_too() {
        assert_eq!(sign("whsec_of_the_test", T, BODY), OPENSSL);
        assert_eq!(judge(&format!("t={T},v1={OPENSSL}")), Ok(()));
    }

    #[test]
    fn only_what_is_signed_here_and_now_is_believed() {
        use Unbelievable::{Forged, Malformed, Missing, Stale};
        let ours = |t| sign("whsec_of_the_test", t, BODY);
        let next = sign("whsec_the_next", T, BODY);
        let wrong = sign("whsec_of_another", T, BODY);
        let altered = sign("whsec_of_the_test", T, br#"{"id":"evt_2"}"#);
        for (header, expected) in [
            (format!("t={T},v1={}", ours(T)), Ok(())),
            (format!("t={T}, v1={}", ours(T)), Ok(())),
            (format!("v1={},t={T}", ours(T).to_uppercase()), Ok(())),
            // While a secret is rotated, either signs, and Stripe signs with both.
            (format!("t={T},v1={next}"), Ok(())),
            (format!("t={T},v1={wrong},v1={}", ours(T)), Ok(())),
            (format!("t={T},v1={},v1={wrong}", ours(T)), Ok(())),
            (format!("t={T},v1=00,v1={},v0=00", ours(T)), Ok(())),
            (format!("t={T},v1={wrong}"), Err(Forged)),
            (format!("t={T},v1={altered}"), Err(Forged)),
            (format!("t={},v1={}", T + 1, ours(T)), Err(Forged)),
            (format!("t={T},v1={}", &ours(T)[..62]), Err(Malformed)),
            (format!("t={T},v1={}", "é".repeat(32)), Err(Malformed)),
            (format!("t={T},v0={}", ours(T)), Err(Malformed)),
            (format!("t={T},v1="), Err(Malformed)),
            (format!("t={T}"), Err(Malformed)),
            (format!("v1={}", ours(T)), Err(Malformed)),
            (format!("t={T},t={},v1={}", T + 1, ours(T)), Err(Malformed)),
            (format!("t=now,v1={}", ours(T)), Err(Forged)),
            (ours(T), Err(Malformed)),
            (String::new(), Err(Malformed)),
            // 774.120 s is ours: 300 s before are 474.120 s, after them 1074.120 s.
            (format!("t={},v1={}", T - 299, ours(T - 299)), Ok(())),
            (format!("t={},v1={}", T - 300, ours(T - 300)), Err(Stale)),
            (format!("t={},v1={}", T + 300, ours(T + 300)), Ok(())),
            (format!("t={},v1={}", T + 301, ours(T + 301)), Err(Stale)),
            (format!("t={},v1={}", i64::MAX, ours(i64::MAX)), Err(Malformed)),
        ] {
            assert_eq!(judge(&header), expected, "{header}");
        }
        assert_eq!(verify(None, BODY, &["whsec_of_the_test".to_owned()], NOW), Err(Missing));
        assert_eq!(verify(Some(&format!("t={T},v1={}", ours(T))), BODY, &[], NOW), Err(Forged));
    }
}
