//! Makes packages.

use std::io::{self, Write};

use crate::digest::sha256;
use crate::key::SigningKey;
use crate::manifest::{FileEntry, Manifest};
use crate::names::{MANIFEST, SIGNATURE, TIMESTAMP};
use crate::signature;
use crate::zip::{self, Entry};

/// The most bytes of a package.
pub const MAX_PACKAGE_BYTES: u64 = 160 << 20;

/// A file beside the manifest.
#[derive(Clone, Debug)]
pub struct PackageFile {
    /// Its name: letters, digits, dots, hyphens and underscores.
    pub name: String,
    /// Its media type.
    pub media_type: String,
    /// Its content.
    pub content: Vec<u8>,
}

impl PackageFile {
    /// What the manifest says about it.
    pub fn entry(&self) -> FileEntry {
        FileEntry {
            name: self.name.clone(),
            media_type: self.media_type.clone(),
            bytes: u64::try_from(self.content.len()).unwrap_or(u64::MAX),
            sha256: sha256(&self.content),
        }
    }
}

/// A manifest and the files that it names, before they are signed.
#[derive(Debug)]
pub struct Contents {
    manifest: Vec<u8>,
    files: Vec<PackageFile>,
}

/// A signed package, before it is written.
#[derive(Debug)]
pub struct Signed {
    contents: Contents,
    signature: Vec<u8>,
    timestamp: Option<Vec<u8>>,
}

impl Contents {
    /// The contents of a package: the manifest, which gets the list of the files, and the files.
    ///
    /// # Errors
    /// If the manifest cannot be written as JSON.
    pub fn new(mut manifest: Manifest, files: Vec<PackageFile>) -> serde_json::Result<Self> {
        manifest.files = files.iter().map(PackageFile::entry).collect();
        Ok(Self { manifest: manifest.to_bytes()?, files })
    }

    /// The bytes of the manifest, for a time stamp.
    pub fn manifest(&self) -> &[u8] {
        &self.manifest
    }

    /// Signs the manifest, and the time stamp of it if there is one.
    ///
    /// # Errors
    /// If the signature cannot be written as JSON.
    pub fn sign(self, key: &SigningKey, timestamp: Option<Vec<u8>>) -> serde_json::Result<Signed> {
        let signature = signature::sign(key, &self.manifest, timestamp.as_deref())?;
        Ok(Signed { contents: self, signature, timestamp })
    }
}

impl Signed {
    /// Writes the package.
    ///
    /// # Errors
    /// Those of `to`, and if the package is too large.
    pub fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        let mut entries = vec![
            Entry { name: MANIFEST, content: &self.contents.manifest },
            Entry { name: SIGNATURE, content: &self.signature },
        ];
        entries.extend(self.timestamp.iter().map(|content| Entry { name: TIMESTAMP, content }));
        entries.extend(self.contents.files.iter().map(|file| Entry { name: &file.name, content: &file.content }));
        zip::write(&entries, to)
    }
}
