//! The signature of a manifest, with the key that made it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::invalid::Invalid;
use crate::key::{PublicKey, SigningKey};

/// Begins each signed message, so that no signature of something else by the same key can be taken for one of a manifest.
const MANIFEST_DOMAIN: &[u8] = b"grabd-evidence-v1\n";
/// The same for a manifest with a time stamp. It differs, so that the time stamp cannot be removed.
const TIMESTAMP_DOMAIN: &[u8] = b"grabd-evidence-timestamp-v1\n";

/// The file, in this order.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SignatureFile {
    algorithm: String,
    /// The thumbprint of the key (RFC 7638).
    key_id: String,
    /// DER (RFC 8410) in base64.
    public_key: String,
    /// Of the manifest and the time stamp, if there is one, in base64.
    signature: String,
}

const ALGORITHM: &str = "Ed25519";

/// The content of `manifest.sig`.
pub(crate) fn sign(key: &SigningKey, manifest: &[u8], timestamp: Option<&[u8]>) -> serde_json::Result<Vec<u8>> {
    write(&SignatureFile {
        algorithm: ALGORITHM.to_owned(),
        key_id: key.public_key().id(),
        public_key: key.public_key().to_der_text(),
        signature: STANDARD.encode(key.sign(&message(manifest, timestamp))),
    })
}

fn write(file: &SignatureFile) -> serde_json::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec_pretty(file)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Checks `manifest.sig`. Returns the key in it.
pub(crate) fn check(file: &[u8], manifest: &[u8], timestamp: Option<&[u8]>) -> Result<PublicKey, Invalid> {
    let signature: SignatureFile = serde_json::from_slice(file).map_err(|_| Invalid::Signature)?;
    let key = PublicKey::of_der_text(&signature.public_key).ok_or(Invalid::Signature)?;
    // What is not signed must be as it is written, so that no byte of it can be changed.
    let is_as_written = write(&signature).is_ok_and(|written| written == file);
    if !is_as_written || signature.algorithm != ALGORITHM || signature.key_id != key.id() {
        return Err(Invalid::Signature);
    }
    // Only the canonical form of base64 is decoded.
    let signed = STANDARD.decode(&signature.signature);
    match signed.is_ok_and(|signed| key.has_signed(&message(manifest, timestamp), &signed)) {
        true => Ok(key),
        false => Err(Invalid::WrongSignature),
    }
}

/// The bytes that are signed. With a time stamp, they have the hash of the manifest, whose length is fixed, so that it is clear
/// where the time stamp begins.
fn message(manifest: &[u8], timestamp: Option<&[u8]>) -> Vec<u8> {
    match timestamp {
        None => [MANIFEST_DOMAIN, manifest].concat(),
        Some(timestamp) => {
            let digest: [u8; 32] = Sha256::digest(manifest).into();
            [TIMESTAMP_DOMAIN, digest.as_slice(), timestamp].concat()
        }
    }
}
