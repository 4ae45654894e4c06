//! A link whose signature is valid.

use grabd_domain::credentials::Caller;
use grabd_domain::ids::KeyId;

/// A link whose signature is valid.
#[derive(Clone)]
pub struct SignedLink {
    /// Who signed it, and pays for it.
    pub caller: Caller,
    /// The key that signed it.
    pub(super) key: KeyId,
    /// Whether the key may read grabs.
    pub(super) may_read: bool,
    pub(super) query: String,
}
