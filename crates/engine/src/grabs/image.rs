//! Reads stored images and attachments, and draws those of placeholders again.

use bytes::Bytes;
use grabd_domain::capture::{AttachmentName, FileKind, Format};
use grabd_domain::grabs::{FileKey, ImageKey};
use grabd_images::ImageFile;
use grabd_store::grabs::{ShownImage, StoredFile};

use super::{derived, evidence};
use crate::placeholder;
use crate::service::Core;

impl Core {
    /// Looks up the image with this key. Placeholders are not stored; they are drawn again.
    ///
    /// # Errors
    /// When the store cannot be read or the placeholder cannot be drawn.
    pub async fn image(&self, key: &ImageKey) -> Result<Option<Image>, ImageError> {
        let images = &self.grabs.images;
        let stored = images.image(key);
        if !images.needs_lookup() && stored.size().await?.is_some() {
            return Ok(Some(Image::Stored(stored)));
        }
        Ok(match self.store.grabs().find_image(key).await? {
            Some(ShownImage::Placeholder(spec)) => Some(Image::Placeholder(self.grabs.shown.images.draw(&spec).await?)),
            Some(ShownImage::Stored) => images.needs_lookup().then_some(Image::Stored(stored)),
            None => None,
        })
    }

    /// Looks up the attachment with this key. Those of placeholders are not stored; they are made again.
    ///
    /// # Errors
    /// When the store cannot be read, or a placeholder or an image of a difference cannot be made again.
    pub async fn file(&self, key: &FileKey) -> Result<Option<Attachment>, ImageError> {
        let Some(StoredFile { name, image, placeholder_of, grab, created_at }) =
            self.store.grabs().find_file(key).await?
        else {
            return Ok(None);
        };
        let content = match placeholder_of {
            Some(spec) => match name {
                AttachmentName::Also(FileKind::Difference) => {
                    self.grabs.shown.differences.image(&self.store, &self.tasks, &spec).await?
                }
                AttachmentName::Also(FileKind::Evidence) => {
                    let placeholder = &self.grabs.shown.images;
                    Some(evidence::of_placeholder(self, placeholder, (grab, created_at), &spec).await?)
                }
                AttachmentName::Also(_)
                | AttachmentName::Slice(_)
                | AttachmentName::Viewport(_)
                | AttachmentName::Step(_) => self.grabs.shown.images.file(&spec, name).await?,
            }
            .map(Image::Placeholder),
            None => Some(Image::Stored(self.grabs.images.attachment(&image, name))),
        };
        let format = image.format();
        Ok(content.map(|content| Attachment { name, format, content }))
    }
}

/// An image to serve.
#[derive(Debug)]
pub enum Image {
    /// A stored file. It is never modified, only deleted.
    Stored(ImageFile),
    /// A placeholder, drawn on request.
    Placeholder(Bytes),
}

/// An attachment, to serve.
#[derive(Debug)]
pub struct Attachment {
    /// Which file it is.
    pub name: AttachmentName,
    /// The format of the image.
    pub format: Format,
    /// The content.
    pub content: Image,
}

/// Why an image could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The database could not be read.
    #[error(transparent)]
    Store(#[from] grabd_store::Error),
    /// The image storage could not be read.
    #[error(transparent)]
    Storage(#[from] grabd_images::Error),
    /// The placeholder could not be drawn.
    #[error(transparent)]
    Placeholder(#[from] crate::placeholder::Error),
    /// The image of a difference between placeholders, or the evidence of one, could not be made.
    #[error(transparent)]
    Difference(#[from] derived::Error),
}

impl ImageError {
    /// Whether trying again in a few seconds may help, because other images take the memory.
    pub const fn is_busy(&self) -> bool {
        match self {
            Self::Placeholder(error) => matches!(error, placeholder::Error::Busy),
            Self::Difference(error) => error.is_busy(),
            Self::Store(_) | Self::Storage(_) => false,
        }
    }
}

impl From<ImageError> for derived::Error {
    fn from(error: ImageError) -> Self {
        match error {
            ImageError::Store(error) => Self::Store(error),
            ImageError::Storage(error) => Self::Storage(error),
            ImageError::Placeholder(error) => Self::Placeholder(error),
            ImageError::Difference(error) => error,
        }
    }
}
