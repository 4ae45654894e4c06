//! The run directory of the browsers, locked by one service at a time.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

/// A locked run directory. Two services that used the same one would end each other's browsers. The kernel releases the
/// lock when the process ends.
#[derive(Debug)]
pub(crate) struct RunDir {
    path: PathBuf,
    _lock: File,
}

/// Why a directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunDirError {
    /// Another service has locked it.
    #[error("another service keeps its browsers there; name another one")]
    Held,
    /// Its owner could replace its contents.
    #[error("it belongs to another user (uid {0})")]
    Foreign(u32),
    /// An I/O error.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl RunDir {
    /// Creates the directory if necessary, and locks it.
    pub(crate) fn lock(path: &Path) -> Result<Self, RunDirError> {
        // Other users may traverse the directory, to let a browser reach its own subdirectory, but not list it.
        fs::DirBuilder::new().recursive(true).mode(0o711).create(path)?;
        Self::lock_existing(path)
    }

    /// Locks an existing directory.
    pub(crate) fn lock_existing(path: &Path) -> Result<Self, RunDirError> {
        let ours = rustix::process::geteuid().as_raw();
        // In a world-writable parent, the name itself may be another user's symlink.
        for owner in [fs::symlink_metadata(path)?.uid(), fs::metadata(path)?.uid()] {
            if owner != ours {
                return Err(RunDirError::Foreign(owner));
            }
        }
        let path = path.canonicalize()?;
        let held = File::open(&path)?;
        flock(&held, FlockOperation::NonBlockingLockExclusive).map_err(|_| RunDirError::Held)?;
        Ok(Self { path, _lock: held })
    }

    /// The canonical path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// A short name for a path that is stable across starts and builds: its FNV-1a hash. It need not be hard to guess.
pub fn short_name(path: &Path) -> String {
    let bytes = path.as_os_str().as_encoded_bytes().iter();
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{chown, lchown, symlink};

    #[test]
    fn short_name_is_stable() {
        // Published FNV-1a test vectors.
        for (path, name) in [("", "cbf29ce484222325"), ("a", "af63dc4c8601ec8c"), ("foobar", "85944171f73967e8")] {
            assert_eq!(short_name(Path::new(path)), name);
        }
    }

    #[test]
    fn directory_cannot_be_locked_twice() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("browsers");
        assert!(matches!(RunDir::lock_existing(&path), Err(RunDirError::Io(_))));
        let held = RunDir::lock(&path).unwrap();
        assert!(matches!(RunDir::lock(&path), Err(RunDirError::Held)));
        drop(held);
        RunDir::lock(&path).unwrap();
    }

    #[test]
    fn directory_of_another_user_is_rejected() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let (theirs, ours) = (directory.path().join("theirs"), directory.path().join("ours"));
        fs::create_dir(&theirs).unwrap();
        fs::create_dir(&ours).unwrap();
        chown(&theirs, Some(60_001), Some(60_001)).unwrap();
        assert!(matches!(RunDir::lock(&theirs), Err(RunDirError::Foreign(60_001))));
        let link = directory.path().join("link");
        symlink(&ours, &link).unwrap();
        RunDir::lock(&link).unwrap();
        lchown(&link, Some(60_001), Some(60_001)).unwrap();
        assert!(matches!(RunDir::lock(&link), Err(RunDirError::Foreign(60_001))));
    }
}
