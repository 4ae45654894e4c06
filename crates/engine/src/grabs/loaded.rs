//! Images as work on pixels takes them.

use grabd_domain::grabs::ImageKey;

use super::derived::{Error, Picture, Source};
use super::image::Image;
use crate::service::Core;

/// The image with this key: a local copy of its file, or a placeholder that is drawn again.
///
/// # Errors
/// [`Error::Deleted`] when there is none, and those of loading it.
pub(super) async fn load(core: &Core, key: &ImageKey) -> Result<Picture, Error> {
    let source = match core.image(key).await?.ok_or(Error::Deleted)? {
        Image::Stored(file) => Source::File(file.local_copy().await?.ok_or(Error::Deleted)?),
        Image::Placeholder(bytes) => Source::Memory(bytes),
    };
    Ok(Picture { source, format: key.format() })
}
