//! Why evidence cannot be signed.

use grabd_evidence::InvalidSeed;

use crate::vault::DecryptError;

/// Why there is no key to sign with.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] grabd_store::Error),
    /// The stored key cannot be decrypted.
    #[error(transparent)]
    Decrypt(#[from] DecryptError),
    /// The stored key is damaged.
    #[error(transparent)]
    Seed(#[from] InvalidSeed),
    /// The stored key is not the one of its id.
    #[error("the stored key of evidence is not the one of its id")]
    OtherKey,
}
