//! One place for images: a directory or a bucket.

use std::io::{self, ErrorKind, Seek, SeekFrom};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use grabd_domain::grabs::ImageKey;
use tokio::time::{Instant, timeout};

use super::bucket::{Bucket, MAX_UPLOADS};
use super::directory::Directory;
use super::error::{Error, Result};
use super::name::FileName;
use super::spool::{Draft, Spool, Unfinished, run_blocking};

/// Time limit of copying an image from a bucket to this machine.
const COPY_LIMIT: Duration = Duration::from_secs(60);

#[derive(Clone, Debug)]
pub(super) enum Place {
    Directory(Directory),
    Bucket(Bucket),
}

/// A file that was found.
pub struct Found {
    /// The size of the whole file in bytes.
    pub size: u64,
    /// The content, or the range of it that was asked for.
    pub content: Content,
}

/// The content of a file.
pub enum Content {
    /// A file at the start of what was asked for. It may have more bytes than that.
    File(std::fs::File),
    /// Exactly what was asked for.
    Stream(BoxStream<'static, io::Result<Bytes>>),
}

/// A file of this machine with the content of an image. A temporary one is deleted when this is dropped.
#[derive(Debug)]
pub struct LocalCopy {
    path: PathBuf,
    _temporary: Option<Unfinished>,
}

impl LocalCopy {
    pub(super) fn temporary(unfinished: Unfinished) -> Self {
        Self { path: unfinished.0.clone(), _temporary: Some(unfinished) }
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Place {
    pub(super) const fn spool(&self) -> &Spool {
        match self {
            Self::Directory(directory) => directory.spool(),
            Self::Bucket(bucket) => bucket.spool(),
        }
    }

    /// Begins a file. It is synced if this is its disk.
    pub(super) async fn begin(&self, key: &ImageKey) -> Result<Draft> {
        let (spool, is_synced) = (self.spool().clone(), matches!(self, Self::Directory(_)));
        let key = key.clone();
        run_blocking(move || spool.begin(key.as_str(), is_synced)).await
    }

    /// Completes files, which end at `until` at the latest if they are uploaded. Those before an error are left behind.
    pub(super) async fn finish_all(&self, files: Vec<(ImageKey, FileName, Draft)>, until: Instant) -> Result<()> {
        match self.clone() {
            Self::Directory(directory) => run_blocking(move || directory.finish_all(files)).await,
            Self::Bucket(bucket) => {
                let upload = |(key, name, draft): (ImageKey, FileName, Draft)| {
                    let bucket = bucket.clone();
                    async move { bucket.upload(&key, name, draft, until).await }
                };
                futures::stream::iter(files).map(upload).buffer_unordered(MAX_UPLOADS).try_collect().await
            }
        }
    }

    /// Stores a small file.
    pub(super) async fn put(&self, key: &ImageKey, name: FileName, content: Bytes) -> Result<()> {
        match self {
            Self::Directory(directory) => {
                let (directory, key) = (directory.clone(), key.clone());
                run_blocking(move || directory.put(&key, name, &content)).await
            }
            Self::Bucket(bucket) => bucket.put(key, name, content).await,
        }
    }

    /// The size of a file in bytes, if it exists.
    pub(super) async fn size(&self, key: &ImageKey, name: FileName) -> Result<Option<u64>> {
        match self {
            Self::Directory(directory) => {
                let path = directory.path(key, name);
                run_blocking(move || match path.metadata() {
                    Ok(file) => Ok(file.is_file().then_some(file.len())),
                    Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                    Err(error) => Err(error),
                })
                .await
            }
            Self::Bucket(bucket) => bucket.size(key, name).await,
        }
    }

    /// A file, or a range of it, if it exists.
    pub(super) async fn read(
        &self,
        key: &ImageKey,
        name: FileName,
        range: Option<RangeInclusive<u64>>,
    ) -> Result<Option<Found>> {
        match self {
            Self::Directory(directory) => {
                let path = directory.path(key, name);
                run_blocking(move || match std::fs::File::open(path) {
                    Ok(mut file) => {
                        let size = file.metadata()?.len();
                        if let Some(range) = range {
                            file.seek(SeekFrom::Start(*range.start()))?;
                        }
                        Ok(Some(Found { size, content: Content::File(file) }))
                    }
                    Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                    Err(error) => Err(error),
                })
                .await
            }
            Self::Bucket(bucket) => {
                let found = bucket.read(key, name, range).await?;
                Ok(found.map(|(size, stream)| Found { size, content: Content::Stream(stream) }))
            }
        }
    }

    /// The content of a small file, if it exists.
    pub(super) async fn read_whole(&self, key: &ImageKey, name: FileName) -> Result<Option<Bytes>> {
        let Some(found) = self.read(key, name, None).await? else { return Ok(None) };
        match found.content {
            Content::File(mut file) => {
                run_blocking(move || {
                    let mut content = Vec::new();
                    io::Read::read_to_end(&mut file, &mut content)?;
                    Ok(Some(Bytes::from(content)))
                })
                .await
            }
            Content::Stream(stream) => {
                let all = stream.try_fold(Vec::new(), async |mut all, part| {
                    all.extend_from_slice(&part);
                    Ok(all)
                });
                Ok(Some(
                    timeout(COPY_LIMIT, all)
                        .await
                        .map_err(|_| Error::TooSlow)?
                        .map_err(|error| interrupted(&error))?
                        .into(),
                ))
            }
        }
    }

    /// The file on this machine, if it exists. That of a bucket is copied.
    pub(super) async fn local_copy(&self, key: &ImageKey, name: FileName) -> Result<Option<LocalCopy>> {
        match self {
            Self::Directory(directory) => {
                let path = directory.path(key, name);
                run_blocking(move || Ok(path.is_file().then_some(LocalCopy { path, _temporary: None }))).await
            }
            Self::Bucket(bucket) => {
                let Some((_, stream)) = bucket.read(key, name, None).await? else { return Ok(None) };
                let draft = timeout(COPY_LIMIT, self.fill(key, stream)).await.map_err(|_| Error::TooSlow)??;
                let unfinished = run_blocking(move || draft.end()).await?;
                Ok(Some(LocalCopy { path: unfinished.0.clone(), _temporary: Some(unfinished) }))
            }
        }
    }

    async fn fill(&self, key: &ImageKey, mut stream: BoxStream<'static, io::Result<Bytes>>) -> Result<Draft> {
        let spool = self.spool().clone();
        let key = key.clone();
        let mut draft = run_blocking(move || spool.begin(key.as_str(), false)).await?;
        while let Some(part) = stream.try_next().await.map_err(|error| interrupted(&error))? {
            draft.write(part).await?;
        }
        Ok(draft)
    }

    /// Deletes an image and everything beside it, if they exist.
    pub(super) async fn delete(&self, key: &ImageKey) -> Result<()> {
        match self {
            Self::Directory(directory) => {
                let (directory, key) = (directory.clone(), key.clone());
                run_blocking(move || directory.delete(&key)).await
            }
            Self::Bucket(bucket) => bucket.delete(key).await,
        }
    }

    /// Deletes one file, if it exists.
    pub(super) async fn remove(&self, key: &ImageKey, name: FileName) -> Result<()> {
        match self {
            Self::Directory(directory) => {
                let (directory, key) = (directory.clone(), key.clone());
                run_blocking(move || directory.remove(&key, name)).await
            }
            Self::Bucket(bucket) => bucket.remove(key, name).await,
        }
    }
}

/// The error of a response that broke.
fn interrupted(error: &io::Error) -> Error {
    Error::ObjectStore(error.to_string())
}
