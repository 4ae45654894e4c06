//! Why a package is not valid.

/// Why a package is not valid. The texts complete "The package is not valid: ".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// More bytes than a package may have.
    #[error("it has more than {} MB", .0 >> 20)]
    TooLarge(u64),
    /// The archive cannot be read at this byte.
    #[error("it is no archive as grabd writes it, at byte {0}")]
    Container(usize),
    /// Two files have the same name.
    #[error("it has two files of the name {0}")]
    DuplicateName(String),
    /// The archive has other bytes than one that is made of its files.
    #[error("its byte {0} differs from the archive that is made of its files")]
    Changed(usize),
    /// A file is missing, or is not in its place.
    #[error("{0} is missing or not in its place")]
    Missing(String),
    /// A file that the manifest does not name.
    #[error("{0} is not in the manifest")]
    Unlisted(String),
    /// The manifest cannot be read.
    #[error("manifest.json cannot be read")]
    Manifest,
    /// The manifest has a version that this program does not know.
    #[error("manifest.json has the version {0}, which this program does not know; use a newer one")]
    Version(u32),
    /// The signature cannot be read.
    #[error("manifest.sig cannot be read")]
    Signature,
    /// The key in the package has not signed this manifest with this time stamp, or without one if there is none.
    #[error("the signature is not one of this manifest and its time stamp")]
    WrongSignature,
    /// A file has another size or hash than the manifest says.
    #[error("{0} is not the file that was signed: its size or hash differs")]
    WrongFile(String),
}
