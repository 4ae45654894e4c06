//! The smaller copy of a placeholder.

use bytes::Bytes;
use grabd_domain::capture::{Format, Thumbnail, ThumbnailFit};
use grabd_pixels::{Picture, PictureError, Source, Target, shrink_to};

use super::slices::pixel_format;

/// The memory that the copy of an image takes.
///
/// # Errors
/// If the image cannot be read.
pub(super) fn memory_bytes(image: &[u8], format: Format, target: Target) -> Result<u64, PictureError> {
    let (_, bytes) = picture(image, format).look()?;
    Ok(bytes.saturating_add(target.memory_bytes()))
}

/// Makes the copy.
///
/// # Errors
/// If the image cannot be read.
pub(super) fn make(image: &[u8], format: Format, target: Target) -> Result<Bytes, PictureError> {
    Ok(Bytes::from(shrink_to(picture(image, format), target, &|| false)?))
}

const fn picture(image: &[u8], format: Format) -> Picture<'_> {
    Picture { source: Source::Memory(image), format: pixel_format(format) }
}

/// The size of a copy, as work on pixels takes it.
pub(crate) const fn pixel_target(thumbnail: Thumbnail) -> Target {
    let Thumbnail { width, height, fit } = thumbnail;
    let is_cut = match fit {
        ThumbnailFit::Contain => false,
        ThumbnailFit::Cover => true,
    };
    Target { width, height, is_cut }
}
