//! Unfinished files: the parts of an image are written to one as they arrive, so that it is not in memory as a whole.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use grabd_domain::Timestamp;

use super::error::{Error, Result};

/// The directory of unfinished files, below a root.
const UNFINISHED: &str = "tmp";

/// A directory of unfinished files.
#[derive(Clone, Debug)]
pub(super) struct Spool {
    directory: Arc<Path>,
    /// Begins the names of files, so that two processes do not use the same.
    prefix: Arc<str>,
    /// Number of unfinished files so far. Each has a name of its own, so that a repeated upload changes no other.
    started: Arc<AtomicU64>,
}

/// An unfinished file. It is deleted unless it was renamed.
#[derive(Debug)]
pub(super) struct Unfinished(pub(super) PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        // It does not exist after it was renamed. A file that cannot be deleted is deleted at the next start.
        drop(std::fs::remove_file(&self.0));
    }
}

/// A file whose parts arrive one after the other. Dropping it discards the parts.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) unfinished: Unfinished,
    content: Content,
    bytes: u64,
    is_synced: bool,
}

/// The content of an unfinished file.
#[derive(Debug)]
enum Content {
    /// Parts may follow.
    Open(File),
    /// All parts are written.
    Closed,
    /// A part is being written, or that failed.
    Interrupted,
}

impl Spool {
    /// Removes the files of an earlier process below `root`.
    pub(super) fn clean(root: &Path) -> io::Result<()> {
        match std::fs::remove_dir_all(root.join(UNFINISHED)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Removes the files below `root` that were written last before `stale_before`.
    pub(super) fn clean_stale(root: &Path, stale_before: Timestamp) -> io::Result<()> {
        let directory = root.join(UNFINISHED);
        create_private(&directory)?;
        let stale_before = UNIX_EPOCH + Duration::from_millis(u64::try_from(stale_before.as_ms()).unwrap_or(0));
        for entry in std::fs::read_dir(directory)? {
            let path = entry?.path();
            // Another process may have finished the file meanwhile.
            if path.metadata().and_then(|file| file.modified()).is_ok_and(|modified| modified < stale_before) {
                drop(std::fs::remove_file(path));
            }
        }
        Ok(())
    }

    /// The directory below `root`, which is created. The names of files begin with `prefix`.
    pub(super) fn open(root: &Path, prefix: &str) -> io::Result<Self> {
        let directory = root.join(UNFINISHED);
        create_private(&directory)?;
        Ok(Self { directory: directory.into(), prefix: prefix.into(), started: Arc::default() })
    }

    /// Creates an unfinished file for `name`.
    pub(super) fn create(&self, name: &str) -> io::Result<(Unfinished, File)> {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let unfinished = Unfinished(self.directory.join(format!("{}{name}.{number}", self.prefix)));
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished.0)?;
        Ok((unfinished, file))
    }

    /// Begins a file for `name`. Its parts are synced to disk if `is_synced`.
    pub(super) fn begin(&self, name: &str, is_synced: bool) -> io::Result<Draft> {
        let (unfinished, file) = self.create(name)?;
        Ok(Draft { unfinished, content: Content::Open(file), bytes: 0, is_synced })
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }
}

impl Draft {
    pub(super) async fn write(&mut self, part: Bytes) -> Result<()> {
        let mut file = self.take_open()?;
        let length = u64::try_from(part.len()).unwrap_or(u64::MAX);
        let written = run_blocking(move || {
            file.write_all(&part)?;
            Ok(file)
        });
        self.content = Content::Open(written.await?);
        self.bytes = self.bytes.saturating_add(length);
        Ok(())
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) async fn close(&mut self) -> Result<()> {
        let file = self.take_open()?;
        let is_synced = self.is_synced;
        run_blocking(move || if is_synced { file.sync_all() } else { Ok(()) }).await?;
        self.content = Content::Closed;
        Ok(())
    }

    /// Ends the parts, if that was not done.
    pub(super) fn end(self) -> io::Result<Unfinished> {
        match self.content {
            Content::Open(file) if self.is_synced => file.sync_all()?,
            Content::Open(_) | Content::Closed => {}
            Content::Interrupted => return Err(interrupted()),
        }
        Ok(self.unfinished)
    }

    fn open_file(&mut self) -> io::Result<&mut File> {
        match &mut self.content {
            Content::Open(file) => Ok(file),
            Content::Closed | Content::Interrupted => Err(interrupted()),
        }
    }

    fn take_open(&mut self) -> Result<File> {
        match std::mem::replace(&mut self.content, Content::Interrupted) {
            Content::Open(file) => Ok(file),
            Content::Closed | Content::Interrupted => Err(Error::Disk(interrupted())),
        }
    }
}

/// For code that makes the content on a blocking thread.
impl Write for Draft {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        let written = self.open_file()?.write(part)?;
        self.bytes = self.bytes.saturating_add(u64::try_from(written).unwrap_or(u64::MAX));
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.open_file()?.flush()
    }
}

fn interrupted() -> io::Error {
    io::Error::other("an earlier part was not written")
}

pub(super) fn create_private(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

pub(super) async fn run_blocking<T: Send + 'static>(
    operation: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T> {
    let result = tokio::task::spawn_blocking(operation).await;
    Ok(result.unwrap_or_else(|error| Err(io::Error::other(error)))?)
}
