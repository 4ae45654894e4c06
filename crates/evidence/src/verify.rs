//! Verifies packages, offline.

use crate::digest::sha256;
use crate::invalid::Invalid;
use crate::key::PublicKey;
use crate::manifest::{FileEntry, Manifest};
use crate::names::{MANIFEST, SIGNATURE, TIMESTAMP};
use crate::package::MAX_PACKAGE_BYTES;
use crate::zip::Entry;
use crate::{signature, zip};

/// A package whose files are those that were signed.
#[derive(Clone, Debug, PartialEq)]
pub struct Verified {
    /// What was signed.
    pub manifest: Manifest,
    /// The key that has signed it. Whose key it is, is not checked.
    pub key: PublicKey,
    /// Whether there is a reply of a time stamp authority. Only that the service has signed it is checked.
    pub has_timestamp: bool,
}

/// Verifies the package: the archive, the signature by the key in it, and all files.
///
/// # Errors
/// If any byte differs from what was signed and written.
pub fn verify(package: &[u8]) -> Result<Verified, Invalid> {
    let bytes = u64::try_from(package.len()).unwrap_or(u64::MAX);
    if bytes > MAX_PACKAGE_BYTES {
        return Err(Invalid::TooLarge(MAX_PACKAGE_BYTES));
    }
    let entries = zip::read(package)?;
    let named = |at: usize, name: &str| entries.get(at).filter(|entry| entry.name == name).map(|entry| entry.content);
    let manifest_bytes = named(0, MANIFEST).ok_or_else(|| Invalid::Missing(MANIFEST.to_owned()))?;
    let signature = named(1, SIGNATURE).ok_or_else(|| Invalid::Missing(SIGNATURE.to_owned()))?;
    let timestamp = named(2, TIMESTAMP);
    // Before anything of the manifest is read.
    let key = signature::check(signature, manifest_bytes, timestamp)?;
    let manifest = Manifest::read(manifest_bytes)?;
    let files = entries.get(if timestamp.is_some() { 3 } else { 2 }..).unwrap_or_default();
    check_files(&manifest.files, files)?;
    Ok(Verified { manifest, key, has_timestamp: timestamp.is_some() })
}

/// Checks that the files are those of the manifest, in its order.
fn check_files(listed: &[FileEntry], files: &[Entry<'_>]) -> Result<(), Invalid> {
    for (at, entry) in listed.iter().enumerate() {
        let file = files.get(at).filter(|file| file.name == entry.name);
        let content = file.ok_or_else(|| Invalid::Missing(entry.name.clone()))?.content;
        if u64::try_from(content.len()) != Ok(entry.bytes) || sha256(content) != entry.sha256 {
            return Err(Invalid::WrongFile(entry.name.clone()));
        }
    }
    match files.get(listed.len()) {
        Some(file) => Err(Invalid::Unlisted(file.name.to_owned())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
