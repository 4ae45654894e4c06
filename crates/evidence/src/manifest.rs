//! The manifest: what was captured, when, by what, and the hashes of the files.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::invalid::Invalid;

/// The version of the manifest.
pub const MANIFEST_VERSION: u32 = 1;

/// What is signed. Members of later versions are ignored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`MANIFEST_VERSION`].
    pub version: u32,
    /// Whether it is about a placeholder of a test key: no page was opened.
    pub test: bool,
    /// The grab.
    pub grab_id: String,
    /// The address that was asked for.
    pub requested_url: String,
    /// The address of the captured document, after redirects.
    pub final_url: Option<String>,
    /// The HTTP status of the document.
    pub http_status: Option<u16>,
    /// What is known about the certificate and the connection of the document. Null without TLS.
    pub tls: Option<Value>,
    /// When the capture was requested.
    pub created_at: String,
    /// When the service received the capture from the browser.
    pub captured_at: String,
    /// The options of the request. Of options that are secret it only says that they were given, with `true`.
    pub options: Value,
    /// The name and version of the browser.
    pub browser: Option<String>,
    /// The version of grabd.
    pub grabd_version: String,
    /// All files of the package, but the manifest, its signature and its time stamp.
    pub files: Vec<FileEntry>,
}

/// A file of the package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Its name.
    pub name: String,
    /// Its media type.
    pub media_type: String,
    /// Its size.
    pub bytes: u64,
    /// Its SHA-256 in lower-case hexadecimal digits.
    pub sha256: String,
}

/// What is read before the rest, which another version may not have.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

impl Manifest {
    /// The bytes that are signed.
    pub(crate) fn to_bytes(&self) -> serde_json::Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec_pretty(self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Invalid> {
        let Version { version } = serde_json::from_slice(bytes).map_err(|_| Invalid::Manifest)?;
        if version != MANIFEST_VERSION {
            return Err(Invalid::Version(version));
        }
        serde_json::from_slice(bytes).map_err(|_| Invalid::Manifest)
    }
}
