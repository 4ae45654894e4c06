//! A copy of the browser's program that Linux maps with huge pages.
//!
//! Each page that is captured has a process of its own, which uses much of the browser's code for a fraction of a second.
//! With pages of 2 MiB instead of 4 KiB, mapping that code takes a few steps instead of thousands, and a capture takes 7 to
//! 8 % less processor time (`docs/decisions/0010-huge-pages-for-the-browsers-program.md`). The program must be laid out for
//! that ([`Layout`]), and the file system must keep files in memory in large pieces.
//!
//! The copy is in a directory that services share. Each copy has a directory of its own, which is named after the program
//! and its time, and which the services that use it have locked.

mod layout;
mod mapping;

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use super::owner::{Owner, can_enter};
use super::run_dir::short_name;
use layout::Layout;
pub(crate) use mapping::Mapping;

/// Names of the directories of copies begin with this.
const PREFIX: &str = "program-";

/// The file that says in which run of the system a copy was written, and whether it is mapped with huge pages. After a
/// restart of the system, a copy is written again: the kernel keeps what is written in large pieces, and reads it from the
/// disk in small ones.
const STATE: &str = "grabd-state";
const UNSUITABLE: &str = "not mapped with huge pages";

/// A file of Chromium beside its program, which looks for such files there.
const RESOURCE: &str = "icudtl.dat";

/// The size of writes: whole huge pages.
const BLOCK: u64 = 4 << 20;

/// The least time between two times that a service writes a copy. If huge pages are rare because memory is short, writing it
/// again does not help.
const WRITE_INTERVAL: Duration = Duration::from_hours(1);

/// The space that must remain on the disk.
const SPARE_SPACE: u64 = 2 << 30;

/// The type of tmpfs in `statfs(2)`.
const TMPFS: i64 = 0x0102_1994;

/// A copy that this process uses.
#[derive(Debug)]
pub(crate) struct ProgramCopy {
    program: PathBuf,
    /// The installed program, by the name that was given.
    installed: PathBuf,
    version: Version,
    directory: PathBuf,
    boot: String,
    /// When this process wrote the copy. `None`: another one did.
    written: Mutex<Option<Instant>>,
    /// Whether the system does not map it with huge pages. It is of no use then, and not written again.
    is_unsupported: AtomicBool,
    /// Held while the copy is used, so that it is not removed.
    lock: File,
}

/// What changes with an update of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Version {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl Version {
    fn of(data: &fs::Metadata) -> Self {
        let modified = (data.mtime(), data.mtime_nsec());
        Self { device: data.dev(), inode: data.ino(), size: data.size(), modified }
    }
}

/// Why the installed program is used. The texts are for operators.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CopyError {
    /// It is a script, or another kind of program.
    #[error("the program is not an executable of Chromium that can be copied")]
    Program,
    /// The directory could be changed by others.
    #[error("the directory belongs to another user, is a link, or others may write to it")]
    Foreign,
    /// The browser's user cannot enter this directory.
    #[error("the browser's user cannot enter {0}")]
    Barred(PathBuf),
    /// The copy would be in memory twice, and count as memory of the browser.
    #[error("the directory is in memory (tmpfs)")]
    InMemory,
    /// There is too little space.
    #[error("the disk has too little space")]
    Space,
    /// Another service is writing the copy, and this one does not wait for it.
    #[error("another service is writing it at this moment")]
    Busy,
    /// It was found out before, in this run of the system.
    #[error("the file system or the kernel does not support it")]
    Unsuitable,
    /// An I/O error.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl ProgramCopy {
    /// Returns the copy of the installed program in `parent`. Writes it if there is none yet, which takes about a second.
    pub(crate) fn prepare(installed: &Path, parent: &Path, owner: Owner) -> Result<Self, CopyError> {
        let program = installed.canonicalize()?;
        let (Some(origin), Some(name)) = (program.parent(), program.file_name()) else {
            return Err(CopyError::Program);
        };
        if !origin.join(RESOURCE).exists() {
            return Err(CopyError::Program);
        }
        let source = File::open(&program)?;
        let version = Version::of(&source.metadata()?);
        let layout = Layout::read(&source)?.ok_or(CopyError::Program)?;
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned();

        fs::DirBuilder::new().recursive(true).mode(0o755).create(parent)?;
        let data = fs::symlink_metadata(parent)?;
        if !data.is_dir() || data.uid() != rustix::process::geteuid().as_raw() || data.mode() & 0o022 != 0 {
            return Err(CopyError::Foreign);
        }
        if rustix::fs::statfs(parent).map_err(io::Error::from)?.f_type == TMPFS {
            return Err(CopyError::InMemory);
        }
        let parent = parent.canonicalize()?;
        can_enter(owner, &parent).map_err(CopyError::Barred)?;

        let directory = parent.join(directory_name(&program, version));
        fs::DirBuilder::new().recursive(true).mode(0o755).create(&directory)?;
        let lock = File::open(&directory)?;
        flock(&lock, FlockOperation::NonBlockingLockShared).map_err(|_| CopyError::Busy)?;
        let (program, installed) = (directory.join(name), installed.to_owned());
        let copy = Self {
            program,
            installed,
            version,
            directory,
            boot,
            written: Mutex::default(),
            is_unsupported: AtomicBool::new(false),
            lock,
        };
        if !copy.is_current()? {
            flock(&copy.lock, FlockOperation::NonBlockingLockExclusive).map_err(|_| CopyError::Busy)?;
            // Another service may have written it before this one had the lock.
            if !copy.is_current()? {
                remove_unused(&parent, &copy.directory);
                copy.write(&source, &layout, origin)?;
            }
            flock(&copy.lock, FlockOperation::NonBlockingLockShared).map_err(|_| CopyError::Busy)?;
        }
        Ok(copy)
    }

    /// The copied program.
    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// Whether the next browser can run the copy. Directories of caches may be cleared at any time, and the files beside the
    /// program, to which the copy has links, change with an update.
    pub(crate) fn is_usable(&self) -> bool {
        let installed = fs::metadata(&self.installed).is_ok_and(|data| Version::of(&data) == self.version);
        installed && self.program.exists() && !self.is_unsupported.load(Ordering::Relaxed)
    }

    /// Checks how a running browser maps the copy, which takes some milliseconds. If the system does not map it with huge
    /// pages at all, it is not used by the next browsers, nor by the next service before the system is restarted.
    pub(crate) fn check(&self, pid: u32) -> Mapping {
        let mappings = fs::read_to_string(format!("/proc/{pid}/smaps")).unwrap_or_default();
        let mapping = Mapping::read(&mappings, &self.program, self.is_new());
        if mapping == Mapping::Unsupported {
            self.record_unsupported();
        }
        mapping
    }

    fn record_unsupported(&self) {
        self.is_unsupported.store(true, Ordering::Relaxed);
        if let Err(error) = fs::write(self.directory.join(STATE), format!("{}\n{UNSUITABLE}\n", self.boot)) {
            tracing::warn!(%error, "cannot record that the browser's program is not mapped with huge pages");
        }
    }

    /// Writes the copy again for the next browsers, which takes about a second. Running browsers keep the former file.
    /// Does nothing if this process has written it within [`WRITE_INTERVAL`].
    pub(crate) fn renew(&self) -> Result<(), CopyError> {
        if self.is_new() || !self.is_usable() {
            return Ok(());
        }
        // Other services that use the copy have locked its directory, too, and may come to the same conclusion.
        let state = File::open(self.directory.join(STATE))?;
        flock(&state, FlockOperation::NonBlockingLockExclusive).map_err(|_| CopyError::Busy)?;
        let installed = self.installed.canonicalize()?;
        let source = File::open(&installed)?;
        let layout = Layout::read(&source)?.ok_or(CopyError::Program)?;
        self.write(&source, &layout, installed.parent().ok_or(CopyError::Program)?)
    }

    /// Whether this process has written the copy within [`WRITE_INTERVAL`].
    fn is_new(&self) -> bool {
        self.written().is_some_and(|written| written.elapsed() < WRITE_INTERVAL)
    }

    fn written(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        self.written.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Whether the copy was written in this run of the system.
    fn is_current(&self) -> Result<bool, CopyError> {
        let state = fs::read_to_string(self.directory.join(STATE)).unwrap_or_default();
        let mut lines = state.lines();
        match (lines.next() == Some(&self.boot), lines.next()) {
            (true, Some(UNSUITABLE)) => Err(CopyError::Unsuitable),
            (is_current, _) => Ok(is_current && self.program.exists()),
        }
    }

    /// Writes the copy, and links to the files beside the program.
    fn write(&self, source: &File, layout: &Layout, origin: &Path) -> Result<(), CopyError> {
        let disk = rustix::fs::statvfs(&self.directory).map_err(io::Error::from)?;
        if disk.f_bavail.saturating_mul(disk.f_frsize) < layout.size + SPARE_SPACE {
            return Err(CopyError::Space);
        }
        let name = self.program.file_name();
        for entry in fs::read_dir(origin)? {
            let entry = entry?;
            if Some(entry.file_name().as_os_str()) != name {
                match symlink(entry.path(), self.directory.join(entry.file_name())) {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error.into()),
                    Ok(()) | Err(_) => {}
                }
            }
        }
        // A browser may be running the former copy.
        let new = self.directory.join("grabd-new");
        drop(fs::remove_file(&new));
        let written = self.write_program(source, layout, &new);
        if written.is_err() {
            drop(fs::remove_file(&new));
        }
        written?;
        fs::rename(&new, &self.program)?;
        fs::write(self.directory.join(STATE), format!("{}\n", self.boot))?;
        *self.written() = Some(Instant::now());
        Ok(())
    }

    fn write_program(&self, source: &File, layout: &Layout, path: &Path) -> io::Result<()> {
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o755).open(path)?;
        let mut block = vec![0; usize::try_from(BLOCK.min(layout.size)).unwrap_or_default()];
        let mut start = 0;
        while start < layout.size {
            block.truncate(usize::try_from(layout.size - start).unwrap_or(usize::MAX));
            layout.read_block(source, start, &mut block)?;
            file.write_all(&block)?;
            start += block.len() as u64;
        }
        Ok(())
    }
}

/// A name that differs for each version of a program.
fn directory_name(program: &Path, version: Version) -> String {
    format!("{PREFIX}{}", short_name(Path::new(&format!("{} {version:?}", program.display()))))
}

/// Removes the copies that no service uses, except `kept`.
fn remove_unused(parent: &Path, kept: &Path) {
    for path in fs::read_dir(parent).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let is_copy = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(PREFIX.as_bytes()));
        if is_copy
            && path != kept
            && let Ok(lock) = File::open(&path)
            && flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok()
            && let Err(error) = fs::remove_dir_all(&path)
        {
            tracing::warn!(%error, path = %path.display(), "cannot remove an unused copy of a browser's program");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory with a program and a resource, and an empty one for copies. Not in memory.
    fn directories() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let (origin, parent) = (directory.path().join("origin"), directory.path().join("copies"));
        fs::create_dir(&origin).unwrap();
        fs::copy("/proc/self/exe", origin.join("program")).unwrap();
        fs::write(origin.join(RESOURCE), "data").unwrap();
        (directory, origin.join("program"), parent)
    }

    fn copies(parent: &Path) -> usize {
        fs::read_dir(parent).unwrap().count()
    }

    #[test]
    fn copied_program_runs_and_is_kept() {
        let (_directory, program, parent) = directories();
        let copy = ProgramCopy::prepare(&program, &parent, Owner::Ourselves).unwrap();
        let run = std::process::Command::new(copy.program()).arg("--list").output().unwrap();
        assert!(
            run.status.success() && String::from_utf8_lossy(&run.stdout).contains("copied_program_runs_and_is_kept")
        );
        assert_eq!(fs::read_to_string(copy.directory.join(RESOURCE)).unwrap(), "data");
        let written = fs::metadata(copy.program()).unwrap().ino();
        let again = ProgramCopy::prepare(&program, &parent, Owner::Ourselves).unwrap();
        assert_eq!(fs::metadata(again.program()).unwrap().ino(), written);
        // It is written again if the kernel has dropped it from memory, but not twice.
        copy.renew().unwrap();
        assert_eq!(fs::metadata(again.program()).unwrap().ino(), written);
        again.renew().unwrap();
        let renewed = fs::metadata(again.program()).unwrap().ino();
        again.renew().unwrap();
        assert!(renewed != written && fs::metadata(copy.program()).unwrap().ino() == renewed);
        // In another run of the system.
        fs::write(copy.directory.join(STATE), "another\n").unwrap();
        assert!(matches!(ProgramCopy::prepare(&program, &parent, Owner::Ourselves), Err(CopyError::Busy)));
        drop((copy, again));
        let later = ProgramCopy::prepare(&program, &parent, Owner::Ourselves).unwrap();
        assert_ne!(fs::metadata(later.program()).unwrap().ino(), renewed);
        assert_eq!(later.check(std::process::id()), Mapping::Unknown, "this process does not run the copy");
        // It is not written again and again where it is of no use.
        later.record_unsupported();
        *later.written() = None;
        later.renew().unwrap();
        assert!(!later.is_usable());
        assert!(matches!(ProgramCopy::prepare(&program, &parent, Owner::Ourselves), Err(CopyError::Unsuitable)));
    }

    #[test]
    fn copies_of_former_versions_are_removed_when_unused() {
        let (_directory, program, parent) = directories();
        let first = ProgramCopy::prepare(&program, &parent, Owner::Ourselves).unwrap();
        let touch = |seconds| {
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
            File::options().append(true).open(&program).unwrap().set_modified(time).unwrap();
        };
        assert!(first.is_usable());
        touch(1);
        assert!(!first.is_usable());
        let second = ProgramCopy::prepare(&program, &parent, Owner::Ourselves).unwrap();
        assert!(copies(&parent) == 2 && first.program.exists());
        drop(first);
        touch(2);
        let third = ProgramCopy::prepare(&program, &parent, Owner::Ourselves).unwrap();
        assert!(copies(&parent) == 2 && second.program.exists() && third.is_usable());
    }

    #[test]
    fn unsuitable_programs_and_directories_are_refused() {
        let (directory, program, parent) = directories();
        let script = program.with_file_name("script");
        fs::write(&script, "#!/bin/sh\n").unwrap();
        assert!(matches!(ProgramCopy::prepare(&script, &parent, Owner::Ourselves), Err(CopyError::Program)));
        let alone = directory.path().join("alone");
        fs::copy(&program, &alone).unwrap();
        assert!(matches!(ProgramCopy::prepare(&alone, &parent, Owner::Ourselves), Err(CopyError::Program)));
        assert!(!parent.exists());
        let other = Owner::Other { uid: 60_001, gid: 60_001 };
        fs::DirBuilder::new().mode(0o700).create(&parent).unwrap();
        assert!(matches!(ProgramCopy::prepare(&program, &parent, other), Err(CopyError::Barred(_))));
        fs::set_permissions(&parent, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        assert!(matches!(ProgramCopy::prepare(&program, &parent, Owner::Ourselves), Err(CopyError::Foreign)));
    }
}
