//! Image files, and the files beside them.
//!
//! An image is written to a temporary file, synced and renamed, so a file at its final path is complete and durable.
//! Images are never replaced by others: each attempt has its own key.

use std::collections::BTreeSet;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use grabd_domain::capture::BesideName;
use grabd_domain::grabs::ImageKey;

/// Directory of unfinished files.
const UNFINISHED: &str = "tmp";

/// The image storage. Cheap to clone.
#[derive(Clone, Debug)]
pub enum Images {
    /// A directory on this machine.
    Local(Local),
}

/// A directory with the images below `i/` and unfinished files below `tmp/`.
#[derive(Clone, Debug)]
pub struct Local {
    root: Arc<Path>,
    /// Number of unfinished files so far. Each has a name of its own, so that a repeated upload changes no other.
    started: Arc<AtomicU64>,
}

/// An image that is being stored in parts. Dropping it discards the parts.
#[derive(Debug)]
pub struct Upload {
    local: Local,
    path: PathBuf,
    unfinished: Unfinished,
    content: Content,
    bytes: u64,
}

/// The content of an unfinished file.
#[derive(Debug)]
enum Content {
    /// Parts may follow.
    Open(File),
    /// All parts are on disk.
    Synced,
    /// A part is being written, or that failed.
    Interrupted,
}

/// An unfinished file. It is deleted unless it was renamed.
#[derive(Debug)]
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        // It does not exist after it was renamed. A file that cannot be deleted is deleted at the next start.
        drop(std::fs::remove_file(&self.0));
    }
}

/// The space of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskSpace {
    /// What this process may still write, in bytes.
    pub free_bytes: u64,
    /// The whole file system, in bytes.
    pub total_bytes: u64,
}

/// Error of the image storage.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The disk is full.
    #[error("the images' disk is full")]
    Full(#[source] io::Error),
    /// Any other I/O error.
    #[error("the images' directory cannot be accessed")]
    Disk(#[source] io::Error),
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        match matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) {
            true => Self::Full(error),
            false => Self::Disk(error),
        }
    }
}

type Result<T> = std::result::Result<T, Error>;

impl Images {
    /// Opens the directory `root` and creates it if it does not exist. Only one process may have it open: unfinished
    /// files of an earlier process are removed.
    ///
    /// # Errors
    /// When the directory cannot be created or cleaned.
    pub fn local(root: PathBuf) -> Result<Self> {
        let local = Local { root: root.into(), started: Arc::default() };
        let unfinished = local.root.join(UNFINISHED);
        if unfinished.exists() {
            std::fs::remove_dir_all(&unfinished)?;
        }
        create_private(&unfinished)?;
        create_private(&local.root.join("i"))?;
        Ok(Self::Local(local))
    }

    /// Stores an image. On return, the image survives a power failure. Idempotent.
    ///
    /// # Errors
    /// [`Error::Full`] when the disk is full. No file is left behind.
    pub async fn put(&self, key: &ImageKey, image: Bytes) -> Result<()> {
        let Self::Local(local) = self.clone();
        let key = key.clone();
        run_blocking(move || local.put(&key, &image)).await
    }

    /// Starts storing an image in parts, so that it is not in memory as a whole.
    ///
    /// # Errors
    /// When no file can be created.
    pub async fn begin(&self, key: &ImageKey) -> Result<Upload> {
        let Self::Local(local) = self.clone();
        let key = key.clone();
        run_blocking(move || {
            let (unfinished, file) = local.create(key.as_str())?;
            let path = local.path(&key);
            Ok(Upload { local, path, unfinished, content: Content::Open(file), bytes: 0 })
        })
        .await
    }

    /// Starts storing a file beside the image with this key. It is deleted with the image.
    ///
    /// # Errors
    /// When no file can be created.
    pub async fn begin_file(&self, key: &ImageKey, name: BesideName) -> Result<Upload> {
        let Self::Local(local) = self.clone();
        let key = key.clone();
        run_blocking(move || {
            let (unfinished, file) = local.create(key.as_str())?;
            let path = local.beside_path(&key, name);
            Ok(Upload { local, path, unfinished, content: Content::Open(file), bytes: 0 })
        })
        .await
    }

    /// The path of a file beside an image, if it exists.
    pub async fn file_beside(&self, key: &ImageKey, name: BesideName) -> Option<PathBuf> {
        let Self::Local(local) = self.clone();
        let path = local.beside_path(key, name);
        run_blocking(move || Ok(path.is_file().then_some(path))).await.ok().flatten()
    }

    /// Stores the thumbnail of an image beside it, unless the image was deleted meanwhile. It is deleted with the
    /// image.
    ///
    /// # Errors
    /// [`Error::Full`] when the disk is full. No file is left behind.
    pub async fn put_thumbnail(&self, key: &ImageKey, thumbnail: Bytes) -> Result<()> {
        let Self::Local(local) = self.clone();
        let key = key.clone();
        run_blocking(move || local.put_thumbnail(&key, &thumbnail)).await
    }

    /// The thumbnail of an image, if it was stored.
    ///
    /// # Errors
    /// When the file exists and cannot be read.
    pub async fn thumbnail(&self, key: &ImageKey) -> Result<Option<Bytes>> {
        let Self::Local(local) = self.clone();
        let path = local.thumbnail_path(key);
        run_blocking(move || match std::fs::read(path) {
            Ok(file) => Ok(Some(Bytes::from(file))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        })
        .await
    }

    /// The path of an image, if it exists.
    pub async fn file(&self, key: &ImageKey) -> Option<PathBuf> {
        let Self::Local(local) = self.clone();
        let path = local.path(key);
        run_blocking(move || Ok(path.is_file().then_some(path))).await.ok().flatten()
    }

    /// Deletes an image, its thumbnail and the files beside it. Succeeds when they do not exist.
    ///
    /// # Errors
    /// When the file cannot be deleted.
    pub async fn delete(&self, key: &ImageKey) -> Result<()> {
        let Self::Local(local) = self.clone();
        // The image first: a thumbnail that is being stored is deleted again if its image is gone.
        let key = key.clone();
        run_blocking(move || {
            remove(&local.path(&key))?;
            remove(&local.thumbnail_path(&key))?;
            BesideName::all().try_for_each(|name| remove(&local.beside_path(&key, name)))
        })
        .await
    }

    /// The space of the file system that the images are on.
    ///
    /// # Errors
    /// When the file system cannot be queried.
    pub async fn disk_space(&self) -> Result<DiskSpace> {
        let Self::Local(local) = self.clone();
        run_blocking(move || {
            let disk = rustix::fs::statvfs(&*local.root)?;
            let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
            Ok(DiskSpace { free_bytes: bytes(disk.f_bavail), total_bytes: bytes(disk.f_blocks) })
        })
        .await
    }
}

impl Upload {
    /// Appends a part.
    ///
    /// # Errors
    /// [`Error::Full`] when the disk is full. The upload cannot be continued.
    pub async fn write(&mut self, part: Bytes) -> Result<()> {
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

    /// The bytes written so far.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Ends the parts, so that an upload that waits for others keeps no file open.
    ///
    /// # Errors
    /// As [`Upload::write`].
    pub async fn close(&mut self) -> Result<()> {
        let file = self.take_open()?;
        run_blocking(move || file.sync_all()).await?;
        self.content = Content::Synced;
        Ok(())
    }

    fn open_file(&mut self) -> io::Result<&mut File> {
        match &mut self.content {
            Content::Open(file) => Ok(file),
            Content::Synced | Content::Interrupted => Err(interrupted()),
        }
    }

    fn take_open(&mut self) -> Result<File> {
        match std::mem::replace(&mut self.content, Content::Interrupted) {
            Content::Open(file) => Ok(file),
            Content::Synced | Content::Interrupted => Err(Error::Disk(interrupted())),
        }
    }

    /// Completes the image. On return, it survives a power failure.
    ///
    /// # Errors
    /// As [`Upload::write`]. No file is left behind.
    pub async fn finish(self) -> Result<()> {
        Self::finish_all(vec![self]).await
    }

    /// Completes an image and files beside it, in this order.
    ///
    /// # Errors
    /// As [`Upload::write`]. Those before the first error are left behind.
    pub async fn finish_all(uploads: Vec<Self>) -> Result<()> {
        run_blocking(move || {
            let mut directories = BTreeSet::new();
            for Self { local, path, unfinished, content, bytes: _ } in uploads {
                match content {
                    Content::Open(file) => file.sync_all()?,
                    Content::Synced => {}
                    Content::Interrupted => return Err(interrupted()),
                }
                directories.extend(local.rename(&unfinished, &path)?);
            }
            sync(&directories)
        })
        .await
    }
}

/// For code that makes the content on a blocking thread.
impl Write for Upload {
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

impl Local {
    fn path(&self, key: &ImageKey) -> PathBuf {
        self.root.join(key.path())
    }

    /// No image has this name, because a key has one dot.
    fn thumbnail_path(&self, key: &ImageKey) -> PathBuf {
        self.root.join(format!("{}.thumbnail.jpeg", key.path()))
    }

    /// No image or thumbnail has this name: the former have one dot, the latter end with another word.
    fn beside_path(&self, key: &ImageKey, name: BesideName) -> PathBuf {
        let path = key.path();
        self.root.join(match name {
            BesideName::Also(kind) => format!("{path}.{}", kind.as_str()),
            BesideName::Slice(number) => format!("{path}.slice-{}", number.get()),
            BesideName::Viewport(number) => format!("{path}.viewport-{}", number.get()),
        })
    }

    fn put(&self, key: &ImageKey, image: &[u8]) -> io::Result<()> {
        let (unfinished, mut file) = self.create(key.as_str())?;
        file.write_all(image)?;
        self.complete(&file, &unfinished, &self.path(key))
    }

    fn put_thumbnail(&self, key: &ImageKey, thumbnail: &[u8]) -> io::Result<()> {
        let (unfinished, mut file) = self.create(key.as_str())?;
        file.write_all(thumbnail)?;
        let path = self.thumbnail_path(key);
        self.complete(&file, &unfinished, &path)?;
        match self.path(key).try_exists()? {
            true => Ok(()),
            false => remove(&path),
        }
    }

    /// Creates an unfinished file for `name`.
    fn create(&self, name: &str) -> io::Result<(Unfinished, File)> {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let unfinished = Unfinished(self.root.join(UNFINISHED).join(format!("{name}.{number}")));
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished.0)?;
        Ok((unfinished, file))
    }

    /// Moves a file whose content was written to its final path.
    fn complete(&self, file: &File, unfinished: &Unfinished, path: &Path) -> io::Result<()> {
        file.sync_all()?;
        sync(&self.rename(unfinished, path)?)
    }

    /// Moves a file to its final path. Returns the directories that must be synced.
    fn rename(&self, unfinished: &Unfinished, path: &Path) -> io::Result<BTreeSet<PathBuf>> {
        create_private(path.parent().unwrap_or(&self.root))?;
        std::fs::rename(&unfinished.0, path)?;
        // A new directory's own entry must be synced too: sync every directory up to and including the root.
        let directories = path.ancestors().skip(1).take_while(|directory| directory.starts_with(&self.root));
        Ok(directories.map(Path::to_path_buf).collect())
    }
}

fn sync(directories: &BTreeSet<PathBuf>) -> io::Result<()> {
    // The innermost first, as their names are longer.
    directories.iter().rev().try_for_each(|directory| File::open(directory)?.sync_all())
}

/// Deletes a file, if it exists.
fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn create_private(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

async fn run_blocking<T: Send + 'static>(operation: impl FnOnce() -> io::Result<T> + Send + 'static) -> Result<T> {
    let result = tokio::task::spawn_blocking(operation).await;
    Ok(result.unwrap_or_else(|error| Err(io::Error::other(error)))?)
}
