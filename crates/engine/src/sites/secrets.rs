//! Encryption of the secret options of the captures of site jobs: request headers, cookies and passwords.

use grabd_domain::capture::CaptureSpec;
use grabd_domain::ids::SiteId;

use crate::error::Error;
use crate::queue::secrets::{restore, to_json};
use crate::vault::Vault;

/// Encrypts the secret options, for this job only. `None` if there are none.
///
/// # Errors
/// If they cannot be serialized.
pub(super) fn seal(vault: &Vault, site: SiteId, spec: &CaptureSpec) -> Result<Option<Vec<u8>>, Error> {
    Ok(to_json(spec)?.map(|json| vault.seal(&json, site.0.as_bytes())))
}

/// Adds the secret options of a job to its spec. `None` if they are missing or cannot be decrypted: then the key file is another
/// one.
pub(super) fn unseal(vault: &Vault, site: SiteId, spec: CaptureSpec, sealed: Option<&[u8]>) -> Option<CaptureSpec> {
    restore(vault, site.0.as_bytes(), spec, sealed)
}
