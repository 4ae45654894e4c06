//! The files of the pictures.
//!
//! A picture is written beside its place and then moved there, so that a file at its place is whole, and it is on the
//! disk before anybody is told of it. Pictures are never overwritten with others: each attempt has its own key.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use grabd_domain::grabs::ImageKey;

/// Where the pictures are kept. Cheap to clone.
#[derive(Clone, Debug)]
pub enum Images {
    /// In a directory of this machine.
    Local(Local),
}

/// A directory with the pictures below `i/`, and below `tmp/` those that are being written.
#[derive(Clone, Debug)]
pub struct Local {
    root: Arc<Path>,
}

/// Why a picture could not be kept, found or deleted.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No room left.
    #[error("the images' disk is full")]
    Full(#[source] io::Error),
    /// Anything else the disk says.
    #[error("the images' directory does not work")]
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
    /// Pictures in the directory `root`, which is created when it is not there. One process may have it open: what an
    /// earlier one left half-written is removed.
    ///
    /// # Errors
    /// When the directory cannot be created or cleaned.
    pub fn local(root: PathBuf) -> Result<Self> {
        let local = Local { root: root.into() };
        let unfinished = local.unfinished();
        if unfinished.exists() {
            std::fs::remove_dir_all(&unfinished)?;
        }
        create_private(&unfinished)?;
        create_private(&local.root.join("i"))?;
        Ok(Self::Local(local))
    }

    /// Keeps a picture. When it returns, the picture survives a power cut. Repeating it is harmless.
    ///
    /// # Errors
    /// [`Error::Full`] when there is no room; nothing is left behind then.
    pub async fn put(&self, key: &ImageKey, image: Bytes) -> Result<()> {
        let Self::Local(local) = self.clone();
        let key = key.clone();
        off_the_async_threads(move || local.put(&key, &image)).await
    }

    /// Where a picture lies, if it is there.
    pub async fn file(&self, key: &ImageKey) -> Option<PathBuf> {
        let Self::Local(local) = self.clone();
        let path = local.path(key);
        off_the_async_threads(move || Ok(path.is_file().then_some(path))).await.ok().flatten()
    }

    /// Deletes a picture. One that is not there is deleted already.
    ///
    /// # Errors
    /// When the disk refuses.
    pub async fn delete(&self, key: &ImageKey) -> Result<()> {
        let Self::Local(local) = self.clone();
        let path = local.path(key);
        off_the_async_threads(move || match std::fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        })
        .await
    }

    /// Room left for pictures, in bytes.
    ///
    /// # Errors
    /// When the disk does not say.
    pub async fn free_bytes(&self) -> Result<u64> {
        let Self::Local(local) = self.clone();
        off_the_async_threads(move || {
            let disk = rustix::fs::statvfs(&*local.root)?;
            Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
        })
        .await
    }
}

impl Local {
    fn unfinished(&self) -> PathBuf {
        self.root.join("tmp")
    }

    fn path(&self, key: &ImageKey) -> PathBuf {
        self.root.join(key.path())
    }

    fn put(&self, key: &ImageKey, image: &[u8]) -> io::Result<()> {
        let unfinished = self.unfinished().join(key.as_str());
        let written = self.write(key, &unfinished, image);
        if written.is_err() {
            // The error that made us give up says more than one of the tidying.
            drop(std::fs::remove_file(&unfinished));
        }
        written
    }

    fn write(&self, key: &ImageKey, unfinished: &Path, image: &[u8]) -> io::Result<()> {
        let path = self.path(key);
        let directory = path.parent().unwrap_or(&self.root);
        create_private(directory)?;
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(unfinished)?;
        file.write_all(image)?;
        file.sync_all()?;
        std::fs::rename(unfinished, &path)?;
        // A directory may be new, and then its own name has to reach the disk too: up to and with the root.
        for directory in path.ancestors().skip(1).take_while(|directory| directory.starts_with(&self.root)) {
            File::open(directory)?.sync_all()?;
        }
        Ok(())
    }
}

fn create_private(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

async fn off_the_async_threads<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    Ok(done.unwrap_or_else(|lost| Err(io::Error::other(lost)))?)
}
