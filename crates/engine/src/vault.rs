//! Encryption of stored secrets with a key that is kept outside of the database.

use std::fmt;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{Key, KeyInit, XChaCha20Poly1305, XNonce};
use hmac::{Hmac, Mac};
use parking_lot::RwLock;
use sha2::Sha256;

use crate::random;

/// Version of the format, written as the first byte so that the format can change later.
const VERSION: u8 = 1;
const NONCE_BYTES: usize = 24;

/// Encrypts secrets that must be readable again, unlike API keys, which are hashed. Cheap to clone; clones share the
/// keys.
///
/// The file has the current key in its first line. While the key is being replaced, the former one is in the second
/// line: what was encrypted with it can still be read. A changed file is read again before the next use, so that the
/// service need not be restarted.
#[derive(Clone)]
pub struct Vault(Arc<Shared>);

struct Shared {
    /// `None`: the keys never change.
    path: Option<PathBuf>,
    keys: RwLock<Keys>,
}

#[derive(Clone)]
struct Keys {
    current: Cipher,
    former: Option<Cipher>,
    /// Identifies the state of the file that they were read from.
    read_from: Option<FileState>,
}

/// Inode, size and time of modification in nanoseconds.
type FileState = (u64, u64, i128);

#[derive(Clone)]
struct Cipher {
    cipher: XChaCha20Poly1305,
    /// The key of [`Vault::digest`].
    digest_key: [u8; 32],
}

impl Cipher {
    fn new(key: [u8; 32]) -> Self {
        let digest_key = hmac(&key, b"digests of secrets");
        Self { cipher: XChaCha20Poly1305::new(&Key::from(key)), digest_key }
    }

    fn unseal(&self, sealed: &[u8], owner: &[u8]) -> Result<Vec<u8>, DecryptError> {
        let (version, rest) = sealed.split_first().ok_or(DecryptError)?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_BYTES>().ok_or(DecryptError)?;
        if *version != VERSION {
            return Err(DecryptError);
        }
        self.cipher.decrypt(&XNonce::from(*nonce), Payload { msg: sealed, aad: owner }).map_err(|_| DecryptError)
    }
}

/// Why the vault cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The key file cannot be read or created.
    #[error("{path}")]
    File {
        /// Path of the key file.
        path: PathBuf,
        /// The I/O error.
        #[source]
        source: io::Error,
    },
    /// The file does not contain a key.
    #[error("{0} does not hold a key, or a key and the former one: lines of 32 bytes in base64")]
    InvalidKey(PathBuf),
}

/// The data was encrypted with another key or for another owner, or it is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a secret cannot be decrypted: is it the key file it was encrypted with?")]
pub struct DecryptError;

impl Vault {
    /// Opens the vault with the key in this file. A missing file is created with a new key, readable by its owner only.
    ///
    /// # Errors
    /// When the file cannot be read or created. An existing file is never overwritten.
    pub fn open(path: &Path) -> Result<Self, Error> {
        if !path.try_exists().map_err(|source| Error::File { path: path.to_owned(), source })? {
            create_key_file(path).map_err(|source| Error::File { path: path.to_owned(), source })?;
        }
        let keys = Keys::read(path)?;
        Ok(Self(Arc::new(Shared { path: Some(path.to_owned()), keys: RwLock::new(keys) })))
    }

    /// Creates a vault with this key.
    pub fn new(key: [u8; 32]) -> Self {
        let keys = Keys { current: Cipher::new(key), former: None, read_from: None };
        Self(Arc::new(Shared { path: None, keys: RwLock::new(keys) }))
    }

    /// The keys, read again if the file has changed. If it cannot be read, the known ones are used.
    fn keys(&self) -> Keys {
        let known = self.0.keys.read().clone();
        let Some(path) = &self.0.path else { return known };
        if file_state(path).is_ok_and(|state| Some(state) == known.read_from) {
            return known;
        }
        match Keys::read(path) {
            Ok(keys) => {
                tracing::info!(path = %path.display(), "the key file has changed and was read again");
                *self.0.keys.write() = keys.clone();
                keys
            }
            Err(error) => {
                tracing::error!(%error, "the key file cannot be read again; using the known keys");
                known
            }
        }
    }

    /// A digest that is equal for equal secrets, until the key is replaced. Without the key file, the secret cannot be
    /// guessed from it.
    pub(crate) fn digest(&self, secret: &[u8]) -> [u8; 32] {
        hmac(&self.keys().current.digest_key, secret)
    }

    /// Encrypts `secret` with `owner` as associated data: it can be decrypted for this owner only.
    ///
    /// # Panics
    /// When the secret exceeds the cipher's limit of many gigabytes.
    pub(crate) fn seal(&self, secret: &[u8], owner: &[u8]) -> Vec<u8> {
        let mut nonce = [0; NONCE_BYTES];
        nonce.copy_from_slice(&random::secret()[..NONCE_BYTES]);
        let payload = Payload { msg: secret, aad: owner };
        let cipher = self.keys().current.cipher;
        let sealed = cipher.encrypt(&XNonce::from(nonce), payload).expect("a short secret can be encrypted");
        [&[VERSION][..], &nonce, &sealed].concat()
    }

    /// Decrypts a secret that was sealed for `owner`, with the current or the former key.
    ///
    /// # Errors
    /// [`DecryptError`] when the key or the owner differs, or the data is damaged.
    pub(crate) fn unseal(&self, sealed: &[u8], owner: &[u8]) -> Result<Vec<u8>, DecryptError> {
        let keys = self.keys();
        match (keys.current.unseal(sealed, owner), keys.former) {
            (Err(DecryptError), Some(former)) => former.unseal(sealed, owner),
            (unsealed, _) => unsealed,
        }
    }

    /// What the data becomes with the current key. `None` if it was sealed with that already.
    ///
    /// # Errors
    /// As [`Vault::unseal`].
    pub(crate) fn reseal(&self, sealed: &[u8], owner: &[u8]) -> Result<Option<Vec<u8>>, DecryptError> {
        if self.keys().current.unseal(sealed, owner).is_ok() {
            return Ok(None);
        }
        Ok(Some(self.seal(&self.unseal(sealed, owner)?, owner)))
    }
}

impl Keys {
    fn read(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::File { path: path.to_owned(), source };
        // Before the content: a file that changes meanwhile is read again.
        let read_from = Some(file_state(path).map_err(failed)?);
        let (current, former) = read_keys(path)?;
        Ok(Self { current: Cipher::new(current), former: former.map(Cipher::new), read_from })
    }
}

/// The current and the former key.
fn read_keys(path: &Path) -> Result<([u8; 32], Option<[u8; 32]>), Error> {
    let failed = |source| Error::File { path: path.to_owned(), source };
    let text = std::fs::read_to_string(path).map_err(failed)?;
    let invalid = || Error::InvalidKey(path.to_owned());
    let decode = |line: &str| STANDARD.decode(line.trim()).ok().and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
    let mut lines = text.trim().lines().map(|line| decode(line).ok_or_else(invalid));
    let current = lines.next().ok_or_else(invalid)??;
    let former = lines.next().transpose()?;
    if lines.next().is_some() { Err(invalid()) } else { Ok((current, former)) }
}

fn file_state(path: &Path) -> io::Result<FileState> {
    let metadata = std::fs::metadata(path)?;
    let modified = i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
    Ok((metadata.ino(), metadata.size(), modified))
}

/// Puts a new key in the first line of the file, and the current one in the second. Returns `false`, without a change,
/// if there is a former key already: then its replacement was interrupted, and continues.
///
/// # Errors
/// When the file cannot be read or replaced. The file is replaced as a whole, or not at all.
pub fn begin_rotation(path: &Path) -> Result<bool, Error> {
    let (current, former) = read_keys(path)?;
    if former.is_some() {
        return Ok(false);
    }
    let text = format!("{}\n{}\n", STANDARD.encode(random::secret()), STANDARD.encode(current));
    replace_key_file(path, &text).map_err(|source| Error::File { path: path.to_owned(), source })?;
    Ok(true)
}

/// Removes the former key from the file. Nothing may be encrypted with it any more.
///
/// # Errors
/// As for [`begin_rotation`].
pub fn end_rotation(path: &Path) -> Result<(), Error> {
    let (current, _) = read_keys(path)?;
    replace_key_file(path, &format!("{}\n", STANDARD.encode(current)))
        .map_err(|source| Error::File { path: path.to_owned(), source })
}

/// Replaces the file atomically. The new one has the same owner, since the service must be able to read it.
fn replace_key_file(path: &Path, text: &str) -> io::Result<()> {
    let before = std::fs::metadata(path)?;
    let temporary = path.with_extension(format!("{:x}", random::random()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    let replaced = file
        .set_permissions(Permissions::from_mode(0o600))
        .and_then(|()| fchown(&file, Some(before.uid()), Some(before.gid())))
        .and_then(|()| file.write_all(text.as_bytes()))
        .and_then(|()| file.sync_all())
        .and_then(|()| std::fs::rename(&temporary, path))
        .and_then(|()| match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            Some(parent) => File::open(parent)?.sync_all(),
            None => Ok(()),
        });
    if replaced.is_err() {
        // Nothing refers to it.
        let _ = std::fs::remove_file(&temporary);
    }
    replaced
}

fn hmac(key: &[u8; 32], message: &[u8]) -> [u8; 32] {
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key).expect("HMAC accepts keys of any length");
    mac.update(message);
    mac.finalize().into_bytes().into()
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Vault(…)")
    }
}

/// Creates a file with a new key atomically, and never replaces an existing one.
fn create_key_file(path: &Path) -> io::Result<()> {
    let temporary = path.with_extension(format!("{:x}", random::random()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    let written = file
        .set_permissions(Permissions::from_mode(0o600))
        .and_then(|()| writeln!(file, "{}", STANDARD.encode(random::secret())))
        .and_then(|()| file.sync_all())
        .and_then(|()| match std::fs::hard_link(&temporary, path) {
            // Another process created the file first; its key is used.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        })
        .and_then(|()| match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            Some(parent) => File::open(parent)?.sync_all(),
            None => Ok(()),
        });
    std::fs::remove_file(&temporary).and(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unseal_requires_the_same_key_and_owner() {
        let vault = Vault::new([7; 32]);
        let sealed = vault.seal(b"a secret", b"me");
        assert_eq!(vault.unseal(&sealed, b"me").unwrap(), b"a secret");
        assert_eq!(vault.unseal(&sealed, b"you"), Err(DecryptError));
        assert_eq!(Vault::new([8; 32]).unseal(&sealed, b"me"), Err(DecryptError));
        assert!(!sealed.windows(8).any(|window| window == b"a secret"));
        assert_ne!(vault.seal(b"a secret", b"me"), sealed, "every seal uses a new nonce");
        for at in 0..sealed.len() {
            let mut damaged = sealed.clone();
            damaged[at] ^= 1;
            assert_eq!(vault.unseal(&damaged, b"me"), Err(DecryptError), "byte {at}");
            assert_eq!(vault.unseal(&sealed[..at], b"me"), Err(DecryptError), "cut at {at}");
        }
    }

    #[test]
    fn digest_depends_on_key_and_secret() {
        let digest = |key, secret: &[u8]| Vault::new([key; 32]).digest(secret);
        assert_eq!(digest(7, b"a"), digest(7, b"a"));
        assert_ne!(digest(7, b"a"), digest(7, b"b"));
        assert_ne!(digest(7, b"a"), digest(8, b"a"));
    }

    #[test]
    fn key_file_is_created_once_and_readable_by_its_owner_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secrets.key");
        let sealed = Vault::open(&path).unwrap().seal(b"x", b"");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(Vault::open(&path).unwrap().unseal(&sealed, b"").unwrap(), b"x");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "the temporary file is removed");
    }

    #[test]
    fn invalid_key_file_is_reported_and_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secrets.key");
        let key = STANDARD.encode([1; 32]);
        for text in ["", "short", &STANDARD.encode([1; 31]), &format!("{key}\nshort"), &format!("{key}\n{key}\n{key}")]
        {
            std::fs::write(&path, text).unwrap();
            assert!(matches!(Vault::open(&path), Err(Error::InvalidKey(_))), "{text}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn open_vault_follows_a_rotation_and_reads_what_the_former_key_encrypted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secrets.key");
        let vault = Vault::open(&path).unwrap();
        let old = vault.seal(b"x", b"me");
        assert!(begin_rotation(&path).unwrap());
        assert!(!begin_rotation(&path).unwrap(), "an interrupted rotation continues");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(vault.unseal(&old, b"me").unwrap(), b"x");
        let new = vault.reseal(&old, b"me").unwrap().unwrap();
        assert_eq!(vault.reseal(&new, b"me"), Ok(None));
        assert_eq!(vault.reseal(&old, b"you"), Err(DecryptError));
        end_rotation(&path).unwrap();
        assert_eq!(vault.unseal(&new, b"me").unwrap(), b"x");
        assert_eq!(vault.unseal(&old, b"me"), Err(DecryptError), "the former key is gone");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
