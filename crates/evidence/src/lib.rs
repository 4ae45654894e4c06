//! Signed evidence of captures: a zip archive with the image, what the page was made of, and a signed list of the hashes of
//! all files.
//!
//! The archive is a function of the names and contents of its files: they are stored without compression, in a fixed order,
//! with fixed times, and without comments or extra fields. A verifier can therefore make it again from what it reads, and
//! finds a change of any byte, also of those that are not part of a file.
//!
//! *Invariant:* this crate does no input or output, reads no clock and makes no random numbers.

mod digest;
mod invalid;
mod key;
mod manifest;
mod names;
mod package;
mod signature;
mod timestamp;
mod verify;
mod zip;

pub use digest::sha256;
pub use invalid::Invalid;
pub use key::{InvalidSeed, PublicKey, SigningKey};
pub use manifest::{FileEntry, MANIFEST_VERSION, Manifest};
pub use names::{MANIFEST, SIGNATURE, TIMESTAMP};
pub use package::{Contents, MAX_PACKAGE_BYTES, PackageFile, Signed};
pub use timestamp::{InvalidTimestamp, MAX_TIMESTAMP_BYTES, check_timestamp, timestamp_request};
pub use verify::{Verified, verify};
