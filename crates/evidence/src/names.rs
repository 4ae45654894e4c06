//! The names of the files that every package may have.

/// The manifest.
pub const MANIFEST: &str = "manifest.json";
/// The signature of the manifest.
pub const SIGNATURE: &str = "manifest.sig";
/// The reply of a time stamp authority, if there is one.
pub const TIMESTAMP: &str = "manifest.tsr";
