//! Hashes as the manifest has them.

use sha2::{Digest as _, Sha256};

/// The SHA-256 of bytes in lower-case hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    let digest: [u8; 32] = Sha256::digest(bytes).into();
    let digits = digest.into_iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
}
