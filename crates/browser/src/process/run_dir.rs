//! The directory that browsers live in, and that no other service uses meanwhile.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

/// A directory that this service holds: two that cleared the same one would end each other's browsers. The system lets
/// go of it when the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct RunDir {
    path: PathBuf,
    _held: File,
}

/// Why a directory is not ours to use.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunDirError {
    /// Another service's browsers live in it.
    #[error("another service keeps its browsers there; name another one")]
    Held,
    /// Whoever owns it could exchange what is in it.
    #[error("it belongs to another user (uid {0})")]
    Foreign(u32),
    /// The system says no.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl RunDir {
    /// Makes the directory when it is not there, and holds it.
    pub(crate) fn take(path: &Path) -> Result<Self, RunDirError> {
        // Others may pass, so that a browser of another user reaches its own directory, but not look.
        fs::DirBuilder::new().recursive(true).mode(0o711).create(path)?;
        Self::take_existing(path)
    }

    /// Holds a directory that is there.
    pub(crate) fn take_existing(path: &Path) -> Result<Self, RunDirError> {
        let ours = rustix::process::geteuid().as_raw();
        // Below a directory that all may write to, the name itself may be somebody else's link to anywhere.
        for owner in [fs::symlink_metadata(path)?.uid(), fs::metadata(path)?.uid()] {
            if owner != ours {
                return Err(RunDirError::Foreign(owner));
            }
        }
        let path = path.canonicalize()?;
        let held = File::open(&path)?;
        flock(&held, FlockOperation::NonBlockingLockExclusive).map_err(|_| RunDirError::Held)?;
        Ok(Self { path, _held: held })
    }

    /// Where it is, without links.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// A short name for a path, which is the same at every start and in every build: FNV-1a. Nothing depends on it being
/// hard to find.
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
    fn a_short_name_is_the_same_for_ever() {
        // The function's own published values.
        for (path, name) in [("", "cbf29ce484222325"), ("a", "af63dc4c8601ec8c"), ("foobar", "85944171f73967e8")] {
            assert_eq!(short_name(Path::new(path)), name);
        }
    }

    #[test]
    fn a_directory_is_held_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("browsers");
        assert!(matches!(RunDir::take_existing(&path), Err(RunDirError::Io(_))));
        let held = RunDir::take(&path).unwrap();
        assert!(matches!(RunDir::take(&path), Err(RunDirError::Held)));
        drop(held);
        RunDir::take(&path).unwrap();
    }

    #[test]
    fn what_belongs_to_another_user_is_not_cleared() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let (theirs, ours) = (directory.path().join("theirs"), directory.path().join("ours"));
        fs::create_dir(&theirs).unwrap();
        fs::create_dir(&ours).unwrap();
        chown(&theirs, Some(60_001), Some(60_001)).unwrap();
        assert!(matches!(RunDir::take(&theirs), Err(RunDirError::Foreign(60_001))));
        let link = directory.path().join("link");
        symlink(&ours, &link).unwrap();
        RunDir::take(&link).unwrap();
        lchown(&link, Some(60_001), Some(60_001)).unwrap();
        assert!(matches!(RunDir::take(&link), Err(RunDirError::Foreign(60_001))));
    }
}
