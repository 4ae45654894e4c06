//! Hashes as the manifest has them.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// The SHA-256 of bytes in lower-case hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    let digest: [u8; 32] = Sha256::digest(bytes).into();
    digest.iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a text cannot fail.
        drop(write!(text, "{byte:02x}"));
        text
    })
}
