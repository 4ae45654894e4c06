//! The names of files in the image storage, which are the same in a directory and in a bucket.

use grabd_domain::capture::{AttachmentName, Format};
use grabd_domain::grabs::ImageKey;

/// One of the files of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileName {
    Image,
    Thumbnail,
    Attachment(AttachmentName),
}

impl FileName {
    /// The files that an image may have besides itself.
    pub(super) fn attachments() -> impl Iterator<Item = Self> {
        std::iter::once(Self::Thumbnail).chain(AttachmentName::all().map(Self::Attachment))
    }

    /// The path below the root of the storage.
    ///
    /// No two names are the same: an image's key has one dot, a thumbnail ends with its own word, and so does each file
    /// beside an image.
    pub(super) fn path(self, key: &ImageKey) -> String {
        let image = key.path();
        match self {
            Self::Image => image,
            Self::Thumbnail => format!("{image}.thumbnail.jpeg"),
            Self::Attachment(AttachmentName::Also(kind)) => format!("{image}.{}", kind.as_str()),
            Self::Attachment(AttachmentName::Slice(number)) => format!("{image}.slice-{}", number.get()),
            Self::Attachment(AttachmentName::Viewport(number)) => format!("{image}.viewport-{}", number.get()),
            Self::Attachment(AttachmentName::Step(number)) => format!("{image}.capture-{}", number.get()),
        }
    }

    /// The media type. `format` is that of the image.
    pub(super) const fn media_type(self, format: Format) -> &'static str {
        match self {
            Self::Image => format.media_type(),
            Self::Thumbnail => Format::Jpeg.media_type(),
            Self::Attachment(name) => name.media_type(format),
        }
    }
}
