//! Images and their attachments, in a directory or in the bucket of an object store.
//!
//! While images are moved from one place to another, they may be in both: new ones are stored in the first place, reads
//! try both, and deletions apply to both.
//!
//! Images are never replaced by others: each attempt has its own key.

mod bucket;
mod directory;
mod error;
mod location;
mod name;
mod place;
mod spool;
mod transfer;
mod upload_target;
mod uploader;

use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use grabd_domain::Timestamp;
use grabd_domain::capture::AttachmentName;
use grabd_domain::grabs::ImageKey;
use tokio::time::{Instant, timeout};

use self::bucket::Bucket;
use self::directory::Directory;
use self::name::FileName;
use self::place::Place;
use self::spool::{Draft, Spool, run_blocking};

pub use bucket::{ResponseHeaders, S3Options};
pub use error::Error;
use error::Result;
pub use location::Location;
pub use place::{Content, Found, LocalCopy};
pub use upload_target::{SignedUploads, UploadTarget};
pub use uploader::{UploadError, Uploader};

/// The image storage. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Images {
    /// Where new images are stored.
    place: Place,
    /// Where others may be.
    fallback: Option<Place>,
}

/// How the image storage is opened.
#[derive(Clone, Debug)]
pub struct ImageOptions {
    /// The directory for unfinished uploads to a bucket.
    pub scratch: PathBuf,
    /// Where new images are stored.
    pub location: Location,
    /// Where others may be.
    pub fallback: Option<Location>,
    /// How buckets are reached.
    pub s3: S3Options,
    /// Given if other processes may have the same directories open.
    pub shared: Option<Shared>,
}

/// How processes share directories.
#[derive(Clone, Debug)]
pub struct Shared {
    /// Unfinished files from before are removed at start: newer ones may be those of other processes.
    pub stale_before: Timestamp,
    /// Begins the names of this process's unfinished files. No other process has the same.
    pub prefix: String,
}

/// An image that is being stored in parts. Dropping it discards the parts.
#[derive(Debug)]
pub struct Upload {
    place: Place,
    key: ImageKey,
    name: FileName,
    draft: Draft,
}

/// A stored file, which may be deleted at any time.
#[derive(Clone, Debug)]
pub struct ImageFile {
    images: Images,
    key: ImageKey,
    name: FileName,
}

/// The space of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskSpace {
    /// What this process may still write, in bytes.
    pub free_bytes: u64,
    /// The whole file system, in bytes.
    pub total_bytes: u64,
}

impl Images {
    /// Opens the directory `root` and creates it if it does not exist. Only one process may have it open: unfinished
    /// files of an earlier process are removed.
    ///
    /// # Errors
    /// When the directory cannot be created or cleaned.
    pub fn local(root: PathBuf) -> Result<Self> {
        let location = Location::Directory(root.clone());
        Self::open(&ImageOptions { scratch: root, location, fallback: None, s3: S3Options::default(), shared: None })
    }

    /// Opens the storage for a service. Unfinished files of earlier processes are removed. Nothing is requested from an
    /// object store.
    ///
    /// # Errors
    /// When a directory cannot be created or cleaned, or the options of the object store are invalid.
    pub fn open(options: &ImageOptions) -> Result<Self> {
        let ImageOptions { scratch, location, fallback, shared, s3: _ } = options;
        for root in std::iter::once(location).chain(fallback).map(|location| root_of(location, scratch)) {
            match shared {
                Some(Shared { stale_before, .. }) => Spool::clean_stale(root, *stale_before)?,
                None => Spool::clean(root)?,
            }
        }
        Self::attach(options, shared.as_ref().map_or("", |shared| &shared.prefix))
    }

    /// Opens the storage beside a service that uses it. The names of unfinished files begin with `prefix`.
    ///
    /// # Errors
    /// As [`Images::open`].
    pub fn attach(options: &ImageOptions, prefix: &str) -> Result<Self> {
        let ImageOptions { scratch, location, fallback, s3, shared: _ } = options;
        let open = |location: &Location, prefix: &str| {
            let root = root_of(location, scratch);
            let spool = Spool::open(root, prefix)?;
            Ok::<_, Error>(match location {
                Location::Directory(root) => Place::Directory(Directory::open(root, spool)?),
                Location::Bucket { bucket, prefix } => Place::Bucket(Bucket::open(bucket, prefix, s3, spool)?),
            })
        };
        let fallback = fallback.as_ref().map(|location| open(location, &format!("{prefix}fallback-")));
        Ok(Self { place: open(location, prefix)?, fallback: fallback.transpose()? })
    }

    /// Whether only images may be served that the database has. Otherwise every file in the directory may be.
    ///
    /// A lookup in the database costs less than a request to an object store, and decides before a deletion is
    /// complete.
    pub const fn needs_lookup(&self) -> bool {
        !matches!((&self.place, &self.fallback), (Place::Directory(_), None))
    }

    /// Checks that all buckets can be written, read, and deleted from, with an object of this name.
    ///
    /// # Errors
    /// The first request that fails.
    pub async fn probe(&self, name: &str) -> Result<()> {
        for place in self.places() {
            if let Place::Bucket(bucket) = place {
                bucket.probe(name).await?;
            }
        }
        Ok(())
    }

    /// Finds out what the object store does with uploads to signed URLs, with an object of this name, which must not be in
    /// use. `None` if new images are stored in a directory.
    ///
    /// # Errors
    /// When the object store cannot be reached, or fails.
    pub async fn probe_signed_uploads(
        &self,
        name: &str,
        uploader: &Uploader,
    ) -> std::result::Result<Option<SignedUploads>, UploadError> {
        match &self.place {
            Place::Directory(_) => Ok(None),
            Place::Bucket(bucket) => bucket.probe_signed_uploads(name, uploader).await.map(Some),
        }
    }

    /// Where a renderer may upload the image with this key itself, for a time in whole seconds. `None` if new images are
    /// stored in a directory, or the object store accepts no such uploads.
    ///
    /// # Errors
    /// When the credentials cannot be read.
    pub async fn upload_target(&self, key: &ImageKey, valid: Duration) -> Result<Option<UploadTarget>> {
        match &self.place {
            Place::Directory(_) => Ok(None),
            Place::Bucket(bucket) => bucket.upload_target(key, valid).await,
        }
    }

    /// Checks within a time that an image which a renderer reports as uploaded is stored, and has the reported size.
    ///
    /// # Errors
    /// [`Error::NotFound`] or [`Error::OtherSize`] if not, or when the storage cannot be read.
    pub async fn check_uploaded(&self, key: &ImageKey, reported: u64, limit: Duration) -> Result<()> {
        let size = timeout(limit, self.place.size(key, FileName::Image)).await.map_err(|_| Error::TooSlow)??;
        match size.ok_or(Error::NotFound)? {
            found if found == reported => Ok(()),
            found => Err(Error::OtherSize { found, reported }),
        }
    }

    /// Stores an image within a time. On return, it survives a power failure. Idempotent.
    ///
    /// # Errors
    /// [`Error::Full`] when the disk is full. No file is left behind.
    pub async fn put(&self, key: &ImageKey, image: Bytes, limit: Duration) -> Result<()> {
        match &self.place {
            Place::Directory(_) => self.place.put(key, FileName::Image, image).await,
            Place::Bucket(_) => {
                let mut upload = self.begin(key).await?;
                upload.write(image).await?;
                upload.finish(limit).await
            }
        }
    }

    /// Starts storing an image in parts, so that it is not in memory as a whole.
    ///
    /// # Errors
    /// When no file can be created.
    pub async fn begin(&self, key: &ImageKey) -> Result<Upload> {
        self.begin_named(key, FileName::Image).await
    }

    /// Starts storing an attachment with this key. It is deleted with the image.
    ///
    /// # Errors
    /// When no file can be created.
    pub async fn begin_file(&self, key: &ImageKey, name: AttachmentName) -> Result<Upload> {
        self.begin_named(key, FileName::Attachment(name)).await
    }

    async fn begin_named(&self, key: &ImageKey, name: FileName) -> Result<Upload> {
        let draft = self.place.begin(key).await?;
        Ok(Upload { place: self.place.clone(), key: key.clone(), name, draft })
    }

    /// The image with this key, which may not exist.
    pub fn image(&self, key: &ImageKey) -> ImageFile {
        ImageFile { images: self.clone(), key: key.clone(), name: FileName::Image }
    }

    /// An attachment with this key, which may not exist.
    pub fn attachment(&self, key: &ImageKey, name: AttachmentName) -> ImageFile {
        ImageFile { images: self.clone(), key: key.clone(), name: FileName::Attachment(name) }
    }

    /// Stores the thumbnail of an image beside it, unless the image was deleted meanwhile. It is deleted with the
    /// image.
    ///
    /// # Errors
    /// [`Error::Full`] when the disk is full. No file is left behind.
    pub async fn put_thumbnail(&self, key: &ImageKey, thumbnail: Bytes) -> Result<()> {
        self.place.put(key, FileName::Thumbnail, thumbnail).await?;
        match self.image(key).size().await? {
            Some(_) => Ok(()),
            None => self.place.remove(key, FileName::Thumbnail).await,
        }
    }

    /// The thumbnail of an image, if it was stored.
    ///
    /// # Errors
    /// When the file exists and cannot be read.
    pub async fn thumbnail(&self, key: &ImageKey) -> Result<Option<Bytes>> {
        for place in self.places() {
            if let Some(thumbnail) = place.read_whole(key, FileName::Thumbnail).await? {
                return Ok(Some(thumbnail));
            }
        }
        Ok(None)
    }

    /// Deletes an image, its thumbnail and the attachments. Succeeds when they do not exist.
    ///
    /// # Errors
    /// When a file cannot be deleted.
    pub async fn delete(&self, key: &ImageKey) -> Result<()> {
        let mut result = Ok(());
        for place in self.places() {
            result = result.and(place.delete(key).await);
        }
        result
    }

    /// Copies an image, its thumbnail and these attachments from the second place to the first, each within a time,
    /// unless they are there already. Returns the bytes of all of them; `None` if the second place has none.
    ///
    /// # Errors
    /// When one of them cannot be read or stored.
    pub async fn pull(&self, key: &ImageKey, attachments: &[AttachmentName], limit: Duration) -> Result<Option<u64>> {
        let Some(fallback) = &self.fallback else { return Ok(None) };
        let names = attachments.iter().map(|name| FileName::Attachment(*name));
        let mut pulled = None;
        for name in [FileName::Image, FileName::Thumbnail].into_iter().chain(names) {
            if let Some(bytes) = transfer::copy(fallback, &self.place, key, name, limit).await? {
                pulled = Some(pulled.unwrap_or(0) + bytes);
            }
        }
        Ok(pulled)
    }

    /// Deletes an image and everything beside it from the second place.
    ///
    /// # Errors
    /// When a file cannot be deleted.
    pub async fn delete_from_fallback(&self, key: &ImageKey) -> Result<()> {
        match &self.fallback {
            Some(fallback) => fallback.delete(key).await,
            None => Ok(()),
        }
    }

    /// The space of the file system that the images are on, or that unfinished uploads to a bucket are on.
    ///
    /// # Errors
    /// When the file system cannot be queried.
    pub async fn disk_space(&self) -> Result<DiskSpace> {
        let root = match &self.place {
            Place::Directory(directory) => directory.root().to_owned(),
            Place::Bucket(bucket) => bucket.spool().directory().to_owned(),
        };
        run_blocking(move || {
            let disk = rustix::fs::statvfs(&root)?;
            let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
            Ok(DiskSpace { free_bytes: bytes(disk.f_bavail), total_bytes: bytes(disk.f_blocks) })
        })
        .await
    }

    fn places(&self) -> impl Iterator<Item = &Place> {
        std::iter::once(&self.place).chain(&self.fallback)
    }

    /// The order in which a file is looked for. An image that is moved between the first two looks is found by the
    /// third.
    fn search_order(&self) -> impl Iterator<Item = &Place> {
        self.places().chain(self.fallback.is_some().then_some(&self.place))
    }
}

impl ImageFile {
    /// The size in bytes, if the file exists.
    ///
    /// # Errors
    /// When the storage cannot be read.
    pub async fn size(&self) -> Result<Option<u64>> {
        for place in self.images.search_order() {
            if let Some(size) = place.size(&self.key, self.name).await? {
                return Ok(Some(size));
            }
        }
        Ok(None)
    }

    /// The content, or a range of it that is inside the file. `None` if the file does not exist.
    ///
    /// # Errors
    /// When the storage cannot be read.
    pub async fn read(&self, range: Option<RangeInclusive<u64>>) -> Result<Option<Found>> {
        for place in self.images.search_order() {
            if let Some(found) = place.read(&self.key, self.name, range.clone()).await? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The file on this machine, for code that needs a file. That of a bucket is copied, at most within a minute.
    /// `None` if the file does not exist.
    ///
    /// # Errors
    /// When the storage cannot be read, or the copy cannot be written.
    pub async fn local_copy(&self) -> Result<Option<LocalCopy>> {
        for place in self.images.search_order() {
            if let Some(copy) = place.local_copy(&self.key, self.name).await? {
                return Ok(Some(copy));
            }
        }
        Ok(None)
    }

    /// A URL from which anybody can read the file for a time, if it is in a bucket.
    ///
    /// # Errors
    /// When the credentials cannot be read, or the object store does not say whether the file is there.
    pub async fn presigned(&self, valid: Duration, headers: &ResponseHeaders) -> Result<Option<String>> {
        let Place::Bucket(bucket) = &self.images.place else { return Ok(None) };
        if self.images.fallback.is_some() && bucket.size(&self.key, self.name).await?.is_none() {
            return Ok(None);
        }
        bucket.presigned(&self.key, self.name, valid, headers).await.map(Some)
    }
}

impl Upload {
    /// Appends a part.
    ///
    /// # Errors
    /// [`Error::Full`] when the disk is full. The upload cannot be continued.
    pub async fn write(&mut self, part: Bytes) -> Result<()> {
        self.draft.write(part).await
    }

    /// The bytes written so far.
    pub const fn bytes(&self) -> u64 {
        self.draft.bytes()
    }

    /// Ends the parts, so that an upload that waits for others keeps no file open.
    ///
    /// # Errors
    /// As [`Upload::write`].
    pub async fn close(&mut self) -> Result<()> {
        self.draft.close().await
    }

    /// Completes the image. On return, it survives a power failure.
    ///
    /// # Errors
    /// As [`Upload::finish_all`].
    pub async fn finish(self, limit: Duration) -> Result<()> {
        Self::finish_all(vec![self], limit).await
    }

    /// Ends the upload without storing anything: what was written is a temporary file, which is deleted when the copy is
    /// dropped.
    ///
    /// # Errors
    /// When a part was not written.
    pub async fn into_temporary(self) -> Result<LocalCopy> {
        let draft = self.draft;
        run_blocking(move || draft.end()).await.map(LocalCopy::temporary)
    }

    /// Completes an image and attachments. Uploads to a bucket are repeated when they fail, but end within the
    /// limit.
    ///
    /// # Errors
    /// [`Error::Full`] when the disk is full, or the error of the object store. Some of the files may be left behind.
    pub async fn finish_all(uploads: Vec<Self>, limit: Duration) -> Result<()> {
        let Some(place) = uploads.first().map(|upload| upload.place.clone()) else { return Ok(()) };
        let files = uploads.into_iter().map(|Self { place: _, key, name, draft }| (key, name, draft)).collect();
        place.finish_all(files, Instant::now() + limit).await
    }
}

/// For code that makes the content on a blocking thread.
impl Write for Upload {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        Write::write(&mut self.draft, part)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.draft.flush()
    }
}

/// The directory with the unfinished files of a location.
fn root_of<'a>(location: &'a Location, scratch: &'a Path) -> &'a Path {
    match location {
        Location::Directory(root) => root,
        Location::Bucket { .. } => scratch,
    }
}
