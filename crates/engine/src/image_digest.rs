//! The SHA-256 of an image.

use sha2::{Digest, Sha256};

/// The SHA-256 of an image, as it is received.
#[derive(Default)]
pub struct ImageDigest(Sha256);

impl ImageDigest {
    /// Adds the next bytes.
    pub fn update(&mut self, part: &[u8]) {
        self.0.update(part);
    }

    /// The digest in lower-case hexadecimal digits.
    pub fn into_hex(self) -> String {
        self.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The digest of a whole image.
    pub(crate) fn of(image: &[u8]) -> String {
        let mut digest = Self::default();
        digest.update(image);
        digest.into_hex()
    }
}
