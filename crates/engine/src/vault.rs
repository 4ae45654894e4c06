//! Secrets at rest: encrypted with a key that is not in the database.

use std::fmt;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{Key, KeyInit, XChaCha20Poly1305, XNonce};

use crate::chance;

/// The format that is written; it comes first, so that another can follow one day.
const VERSION: u8 = 1;
const NONCE_BYTES: usize = 24;

/// Encrypts what must be readable again, unlike API keys. Cheap to clone.
#[derive(Clone)]
pub struct Vault(XChaCha20Poly1305);

/// Why there is no vault.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The key's file cannot be read or made.
    #[error("{path}")]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The file holds something else.
    #[error("{0} does not hold a key: 32 bytes in base64")]
    Damaged(PathBuf),
}

/// What was to be opened was not sealed with this key, or not for this purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a secret cannot be decrypted: is it the key file it was encrypted with?")]
pub struct Sealed;

impl Vault {
    /// The vault with the key in this file, which is made, readable by its owner only, when it is not there.
    ///
    /// # Errors
    /// When the file cannot be used. Nothing is overwritten.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::File { path: path.to_owned(), source };
        let text = match std::fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make(path).map_err(failed)?;
                std::fs::read_to_string(path).map_err(failed)?
            }
            text => text.map_err(failed)?,
        };
        let key = STANDARD.decode(text.trim()).ok().and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
        key.map(Self::new).ok_or_else(|| Error::Damaged(path.to_owned()))
    }

    /// The vault with this key.
    pub fn new(key: [u8; 32]) -> Self {
        Self(XChaCha20Poly1305::new(&Key::from(key)))
    }

    /// Encrypts `secret` for `owner` alone: for anybody else it does not open.
    ///
    /// # Panics
    /// When the secret is longer than gigabytes.
    pub(crate) fn seal(&self, secret: &[u8], owner: &[u8]) -> Vec<u8> {
        let mut nonce = [0; NONCE_BYTES];
        nonce.copy_from_slice(&chance::secret()[..NONCE_BYTES]);
        let payload = Payload { msg: secret, aad: owner };
        let sealed = self.0.encrypt(&XNonce::from(nonce), payload).expect("a short secret can be encrypted");
        [&[VERSION][..], &nonce, &sealed].concat()
    }

    /// Decrypts what was sealed for `owner`.
    ///
    /// # Errors
    /// [`Sealed`] for everything else.
    pub(crate) fn unseal(&self, sealed: &[u8], owner: &[u8]) -> Result<Vec<u8>, Sealed> {
        let (version, rest) = sealed.split_first().ok_or(Sealed)?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_BYTES>().ok_or(Sealed)?;
        if *version != VERSION {
            return Err(Sealed);
        }
        self.0.decrypt(&XNonce::from(*nonce), Payload { msg: sealed, aad: owner }).map_err(|_| Sealed)
    }
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Vault(…)")
    }
}

/// A file with a new key: whole or not at all, and never in the place of another.
fn make(path: &Path) -> io::Result<()> {
    let draft = path.with_extension(format!("{:x}", chance::random()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    let written = file
        .set_permissions(Permissions::from_mode(0o600))
        .and_then(|()| writeln!(file, "{}", STANDARD.encode(chance::secret())))
        .and_then(|()| file.sync_all())
        .and_then(|()| match std::fs::hard_link(&draft, path) {
            // Another process was quicker: its key is the one.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        })
        .and_then(|()| match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            Some(parent) => File::open(parent)?.sync_all(),
            None => Ok(()),
        });
    std::fs::remove_file(&draft).and(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_opens_with_the_same_key_for_the_same_owner() {
        let vault = Vault::new([7; 32]);
        let sealed = vault.seal(b"a secret", b"me");
        assert_eq!(vault.unseal(&sealed, b"me").unwrap(), b"a secret");
        assert_eq!(vault.unseal(&sealed, b"you"), Err(Sealed));
        assert_eq!(Vault::new([8; 32]).unseal(&sealed, b"me"), Err(Sealed));
        assert!(!sealed.windows(8).any(|window| window == b"a secret"));
        assert_ne!(vault.seal(b"a secret", b"me"), sealed, "the nonce is drawn anew");
        for at in 0..sealed.len() {
            let mut damaged = sealed.clone();
            damaged[at] ^= 1;
            assert_eq!(vault.unseal(&damaged, b"me"), Err(Sealed), "byte {at}");
            assert_eq!(vault.unseal(&sealed[..at], b"me"), Err(Sealed), "cut at {at}");
        }
    }

    #[test]
    fn the_key_is_made_once_and_for_its_owner_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secrets.key");
        let sealed = Vault::open(&path).unwrap().seal(b"x", b"");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(Vault::open(&path).unwrap().unseal(&sealed, b"").unwrap(), b"x");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "no draft is left");
    }

    #[test]
    fn a_damaged_key_is_told_and_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secrets.key");
        for text in ["", "short", &STANDARD.encode([1; 31])] {
            std::fs::write(&path, text).unwrap();
            assert!(matches!(Vault::open(&path), Err(Error::Damaged(_))), "{text}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }
}
