//! Keys: Ed25519 (RFC 8032), and their forms as PEM, DER and JSON Web Key.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// What is before the key in its DER form (RFC 8410).
const DER_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

const PEM_BEGIN: &str = "-----BEGIN PUBLIC KEY-----";
const PEM_END: &str = "-----END PUBLIC KEY-----";

/// A private key, with which packages are signed.
pub struct SigningKey {
    pair: Ed25519KeyPair,
    public: PublicKey,
}

/// The bytes are not the seed of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the seed of a signing key has 32 bytes")]
pub struct InvalidSeed;

impl SigningKey {
    /// The key with this seed.
    ///
    /// # Errors
    /// Unless the seed has 32 bytes.
    pub fn of_seed(seed: &[u8]) -> Result<Self, InvalidSeed> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| InvalidSeed)?;
        let public = PublicKey::of_bytes(pair.public_key().as_ref()).ok_or(InvalidSeed)?;
        Ok(Self { pair, public })
    }

    /// The public key.
    pub const fn public_key(&self) -> PublicKey {
        self.public
    }

    pub(crate) fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.pair.sign(message).as_ref().to_vec()
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SigningKey").field(&self.public).finish()
    }
}

/// A public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PublicKey([u8; 32]);

/// A JSON Web Key (RFC 7517), as far as it is read.
#[derive(Deserialize)]
struct Jwk {
    kty: String,
    crv: String,
    x: String,
}

impl PublicKey {
    /// The key with these 32 bytes. `None` for other lengths.
    pub fn of_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// Its bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Its id: the thumbprint of the JSON Web Key (RFC 7638), so that everybody derives the same from the key.
    pub fn id(&self) -> String {
        let thumbprint = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{}"}}"#, self.x());
        URL_SAFE_NO_PAD.encode(Sha256::digest(thumbprint.as_bytes()))
    }

    /// The JSON Web Key (RFC 8037).
    pub fn to_jwk(self) -> Value {
        json!({ "kty": "OKP", "crv": "Ed25519", "x": self.x(), "kid": self.id(), "use": "sig", "alg": "EdDSA" })
    }

    /// The PEM form of the key, as OpenSSL reads it.
    pub fn to_pem(self) -> String {
        format!("{PEM_BEGIN}\n{}\n{PEM_END}\n", self.to_der_text())
    }

    /// The DER form in base64.
    pub(crate) fn to_der_text(self) -> String {
        STANDARD.encode([DER_PREFIX.as_slice(), self.0.as_slice()].concat())
    }

    pub(crate) fn of_der_text(text: &str) -> Option<Self> {
        let der = STANDARD.decode(text).ok()?;
        Self::of_bytes(der.strip_prefix(DER_PREFIX.as_slice())?)
    }

    /// The keys in a file: PEM, a JSON Web Key, or a set of them. Of a set, keys of other kinds are left out. `None` if there is
    /// no key.
    pub fn read_all(text: &str) -> Option<Vec<Self>> {
        let keys: Vec<Self> = match text.trim_start().starts_with('{') {
            true => {
                let document: Value = serde_json::from_str(text).ok()?;
                match document.get("keys").and_then(Value::as_array) {
                    Some(keys) => keys.iter().filter_map(Self::of_jwk).collect(),
                    None => Self::of_jwk(&document).into_iter().collect(),
                }
            }
            false => {
                let blocks = text.split(PEM_BEGIN).skip(1);
                let key = |block: &str| {
                    let (body, _) = block.split_once(PEM_END)?;
                    Self::of_der_text(&body.split_whitespace().collect::<String>())
                };
                blocks.filter_map(key).collect()
            }
        };
        (!keys.is_empty()).then_some(keys)
    }

    fn of_jwk(value: &Value) -> Option<Self> {
        let Jwk { kty, crv, x } = Jwk::deserialize(value).ok()?;
        if (kty.as_str(), crv.as_str()) != ("OKP", "Ed25519") {
            return None;
        }
        Self::of_bytes(&URL_SAFE_NO_PAD.decode(x).ok()?)
    }

    pub(crate) fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, self.0).verify(message, signature).is_ok()
    }

    fn x(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key of RFC 8037, appendix A.
    const SEED: &str = "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A";
    const X: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";

    #[test]
    fn key_has_the_forms_of_the_rfcs() {
        let key = SigningKey::of_seed(&URL_SAFE_NO_PAD.decode(SEED).unwrap()).unwrap().public_key();
        assert_eq!((key.x().as_str(), key.id().as_str()), (X, "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"));
        let jwk = key.to_jwk();
        assert_eq!((&jwk["x"], &jwk["kid"]), (&json!(X), &json!(key.id())));
        let set = json!({ "keys": [{ "kty": "RSA", "n": "AQAB", "e": "AQAB" }, jwk] }).to_string();
        let twice = format!("{}{}", key.to_pem(), key.to_pem());
        for (text, count) in [(key.to_pem(), 1), (key.to_jwk().to_string(), 1), (set, 1), (twice, 2)] {
            assert_eq!(PublicKey::read_all(&text), Some(vec![key; count]), "{text}");
        }
        for text in
            ["", "{", "{}", "key", PEM_BEGIN, r#"{"keys": []}"#, r#"{"kty": "OKP", "crv": "X25519", "x": "AA"}"#]
        {
            assert_eq!(PublicKey::read_all(text), None, "{text}");
        }
        assert_eq!(SigningKey::of_seed(&[7; 31]).unwrap_err(), InvalidSeed);
    }
}
