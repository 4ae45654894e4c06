//! The run directory of the browsers, locked by one service at a time.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock};

use super::owner::Owner;

/// A locked run directory. Two services that used the same one would end each other's browsers. The kernel releases the
/// lock when the process ends.
#[derive(Debug)]
pub(crate) struct RunDir {
    path: PathBuf,
    /// The lock is on it.
    held: File,
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
    /// Creates the directory if necessary, and locks it. Only its owner can list it, and only the browsers' user can enter it.
    pub(crate) fn lock(path: &Path, browsers: Owner) -> Result<Self, RunDirError> {
        if let Some(parent) = path.parent() {
            // Browsers must reach their own directories, so others may traverse these.
            fs::DirBuilder::new().recursive(true).mode(0o711).create(parent)?;
        }
        match fs::DirBuilder::new().mode(0o700).create(path) {
            Ok(()) => {
                let held = Self::lock_existing(path)?;
                held.admit(browsers)?;
                Ok(held)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Self::lock_existing(path),
            Err(error) => Err(error.into()),
        }
    }

    /// Locks an existing directory.
    pub(crate) fn lock_existing(path: &Path) -> Result<Self, RunDirError> {
        let ours = rustix::process::geteuid().as_raw();
        // In a world-writable parent, the name itself may be another user's symlink.
        let named = fs::symlink_metadata(path)?.uid();
        if named != ours {
            return Err(RunDirError::Foreign(named));
        }
        let path = path.canonicalize()?;
        // What is opened is what is checked, whatever the name leads to meanwhile.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let held = File::from(rustix::fs::open(&path, flags, Mode::empty()).map_err(io::Error::from)?);
        let owner = held.metadata()?.uid();
        if owner != ours {
            return Err(RunDirError::Foreign(owner));
        }
        flock(&held, FlockOperation::NonBlockingLockExclusive).map_err(|_| RunDirError::Held)?;
        Ok(Self { path, held })
    }

    /// Lets the browsers' user enter a new directory, if that is another one.
    fn admit(&self, browsers: Owner) -> io::Result<()> {
        let Owner::Other { gid, .. } = browsers else { return Ok(()) };
        fchown(&self.held, None, Some(gid))?;
        // After the group is set. It may enter, but not list.
        self.held.set_permissions(Permissions::from_mode(0o710))
    }

    /// The canonical path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A path of the directory itself, which stays the same if its name leads elsewhere. Valid while `self` lives.
    pub(crate) fn pinned_path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.held.as_raw_fd()).into()
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

    const OURS: Owner = Owner::Ourselves;

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
        let held = RunDir::lock(&path, OURS).unwrap();
        assert!(matches!(RunDir::lock(&path, OURS), Err(RunDirError::Held)));
        drop(held);
        RunDir::lock(&path, OURS).unwrap();
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
        assert!(matches!(RunDir::lock(&theirs, OURS), Err(RunDirError::Foreign(60_001))));
        let link = directory.path().join("link");
        symlink(&ours, &link).unwrap();
        RunDir::lock(&link, OURS).unwrap();
        lchown(&link, Some(60_001), Some(60_001)).unwrap();
        assert!(matches!(RunDir::lock(&link, OURS), Err(RunDirError::Foreign(60_001))));
    }

    #[test]
    fn new_directory_is_private_to_the_service_and_its_browsers() {
        let directory = tempfile::tempdir().unwrap();
        let of_mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let own = RunDir::lock(&directory.path().join("parent/own"), OURS).unwrap();
        assert_eq!((of_mode(own.path()), of_mode(own.path().parent().unwrap())), (0o700, 0o711));
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let other = RunDir::lock(&directory.path().join("other"), Owner::Other { uid: 60_001, gid: 60_002 }).unwrap();
        let data = fs::metadata(other.path()).unwrap();
        assert_eq!((of_mode(other.path()), data.uid(), data.gid()), (0o710, 0, 60_002));
    }

    #[test]
    fn held_directory_is_reached_when_its_name_leads_elsewhere() {
        let directory = tempfile::tempdir().unwrap();
        let (path, moved) = (directory.path().join("run"), directory.path().join("moved"));
        let held = RunDir::lock(&path, OURS).unwrap();
        fs::create_dir(path.join("browser-1")).unwrap();
        fs::rename(&path, &moved).unwrap();
        symlink(directory.path(), &path).unwrap();
        let names: Vec<_> = fs::read_dir(held.pinned_path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["browser-1"]);
    }
}
