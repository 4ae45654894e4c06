//! Standard Webhooks signatures: HMAC-SHA256 over id, timestamp and body.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use grabd_domain::Timestamp;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::secret::Secret;

/// Time of an attempt in seconds since the epoch, as used in the header and the signature.
pub(crate) const fn seconds(at: Timestamp) -> i64 {
    at.as_ms().div_euclid(1000)
}

/// The signature header: one signature for each secret, so that receivers can switch between secrets.
pub(crate) fn sign<'a>(secrets: impl IntoIterator<Item = &'a Secret>, id: &str, at: Timestamp, body: &str) -> String {
    let time = seconds(at).to_string();
    let sign_with = |secret: &Secret| {
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.key()).expect("HMAC accepts keys of any length");
        for part in [id, ".", &time, ".", body] {
            mac.update(part.as_bytes());
        }
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    };
    secrets.into_iter().map(sign_with).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vault::Vault;
    use grabd_domain::ids::EndpointId;
    use uuid::Uuid;

    fn secret(bytes: [u8; 32]) -> Secret {
        let (vault, id) = (Vault::new([0; 32]), EndpointId(Uuid::nil()));
        let sealed = vault.seal(&bytes, id.0.as_bytes());
        Secret::unseal(&vault, &sealed, id).unwrap()
    }

    /// The first value was computed by OpenSSL:
    /// `printf 'msg_a.1795206774.{}' | openssl dgst -sha256 -mac HMAC -macopt hexkey:0000… -binary | base64`.
    #[test]
    fn sign_adds_one_signature_for_each_secret() {
        let at = Timestamp::from_ms(1_795_206_774_999);
        let (old, new) = (secret([0; 32]), secret([255; 32]));
        let one = sign([&old], "msg_a", at, "{}");
        assert_eq!(one, OPENSSL);
        let two = sign([&new, &old], "msg_a", at, "{}");
        assert_eq!(two.split_once(' ').map(|(_, second)| second), Some(OPENSSL));
        assert_ne!(two.split(' ').next(), Some(OPENSSL));
        for (id, ms, body) in [("msg_b", 0, "{}"), ("msg_a", 1, "{}"), ("msg_a", 0, "{} ")] {
            let other = sign([&old], id, Timestamp::from_ms(at.as_ms() + ms), body);
            assert_ne!(other, OPENSSL, "{id} {ms} {body}");
        }
    }

    const OPENSSL: &str = "v1,OunhoLzuOqIhFUmhNn8ueX4A7MnVCs4DAVGSW7eQgyY=";
}
