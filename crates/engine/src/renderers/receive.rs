//! Receives an image and the files beside it in parts, which are written to disk as they arrive.

use bytes::Bytes;
use grabd_domain::capture::FileKind;
use grabd_domain::grabs::ImageKey;
use grabd_domain::ids::LeaseToken;
use grabd_store::{Images, Upload};

use crate::core::Core;
use crate::grabs::finish::{ImageDigest, ReceivedFile, ReceivedImage};

/// An image that is being received, followed by the files that its grab asks for.
pub struct ImageReceiver {
    images: Images,
    key: ImageKey,
    /// The files that have not begun yet.
    missing: Vec<FileKind>,
    digest: ImageDigest,
    current: Receiving,
    ended: Ended,
}

/// What has been received.
#[derive(Default)]
struct Ended {
    image: Option<Upload>,
    files: Vec<ReceivedFile>,
}

/// What the next parts belong to.
struct Receiving {
    /// `None` for the image.
    kind: Option<FileKind>,
    size_bytes: u64,
    upload: Upload,
}

/// Why an image was not received.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// The renderer sent something else than it announced, or than was asked for.
    #[error("{0}")]
    Invalid(&'static str),
    /// The image could not be stored.
    #[error(transparent)]
    NotStored(#[from] grabd_store::images::Error),
}

impl ImageReceiver {
    /// Begins with an image of this size. `None` when no session holds the lease.
    ///
    /// # Errors
    /// [`ReceiveError::NotStored`].
    pub async fn begin(core: &Core, token: LeaseToken, size_bytes: u64) -> Result<Option<Self>, ReceiveError> {
        let Some(key) = core.queue.dispatcher.upload_key(token) else { return Ok(None) };
        let missing = core.queue.dispatcher.also(token);
        let images = core.grabs.images.clone();
        let current = Receiving { kind: None, size_bytes, upload: images.begin(&key).await? };
        let (digest, ended) = (ImageDigest::default(), Ended::default());
        Ok(Some(Self { images, key, missing, digest, current, ended }))
    }

    /// Writes the next part.
    ///
    /// # Errors
    /// [`ReceiveError`].
    pub async fn write(&mut self, part: Bytes) -> Result<(), ReceiveError> {
        let Receiving { kind, size_bytes, upload } = &mut self.current;
        let length = u64::try_from(part.len()).unwrap_or(u64::MAX);
        if upload.bytes().saturating_add(length) > *size_bytes {
            return Err(ReceiveError::Invalid("more bytes than the header says"));
        }
        if kind.is_none() {
            self.digest.update(&part);
        }
        Ok(upload.write(part).await?)
    }

    /// Ends the current file, and begins the next one.
    ///
    /// # Errors
    /// [`ReceiveError`].
    pub async fn next_file(&mut self, kind: &str, size_bytes: u64) -> Result<(), ReceiveError> {
        let kind = FileKind::parse(kind).ok_or(ReceiveError::Invalid("kind"))?;
        let expected = self.missing.iter().position(|of| *of == kind);
        self.missing.remove(expected.ok_or(ReceiveError::Invalid("a file that was not requested"))?);
        if size_bytes > kind.max_bytes() {
            return Err(ReceiveError::Invalid("a file that is too large"));
        }
        let upload = self.images.begin_file(&self.key, kind).await?;
        let previous = std::mem::replace(&mut self.current, Receiving { kind: Some(kind), size_bytes, upload });
        self.ended.add(previous)
    }

    /// Ends the last file.
    ///
    /// # Errors
    /// [`ReceiveError::Invalid`] when something is missing.
    pub fn finish(self) -> Result<(ReceivedImage, Vec<ReceivedFile>), ReceiveError> {
        let Self { images: _, key: _, missing, digest, current, mut ended } = self;
        ended.add(current)?;
        match (ended.image, missing.is_empty()) {
            (Some(image), true) => Ok((ReceivedImage::Parts(image, digest), ended.files)),
            _ => Err(ReceiveError::Invalid("a file is missing")),
        }
    }
}

impl Ended {
    /// Adds a file that has ended.
    fn add(&mut self, Receiving { kind, size_bytes, upload }: Receiving) -> Result<(), ReceiveError> {
        if upload.bytes() != size_bytes {
            return Err(ReceiveError::Invalid("fewer bytes than the header says"));
        }
        match kind {
            None => self.image = Some(upload),
            Some(kind) => self.files.push(ReceivedFile { kind, upload }),
        }
        Ok(())
    }
}
