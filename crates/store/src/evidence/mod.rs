//! The keys that sign evidence of captures. One is in use; the public keys of the others are kept, so that what they signed can
//! be verified.

mod key;
mod queries;
mod rotate;

pub use key::{EvidenceKey, MAX_EVIDENCE_KEYS, NewEvidenceKey};
pub use rotate::RotateKeyOutcome;
