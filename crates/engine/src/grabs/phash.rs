//! Computes the perceptual hash of an image (`phash`) within limits.

use bytes::Bytes;
use grabd_domain::capture::Format;
use grabd_domain::grabs::{ImageKey, PerceptualHash};
use grabd_domain::limits::PHASH_LIMIT;
use grabd_memory::MemoryBudget;
use grabd_pixels::perceptual_hash;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::derived::{self, Error, Picture, Source};
use crate::service::Core;

/// Memory for rows and the decoder of PNG.
const ROWS_BYTES: u64 = 1 << 20;

/// The hash of a stored image.
///
/// # Errors
/// See [`Error`].
pub(super) async fn of_stored(core: &Core, key: &ImageKey) -> Result<PerceptualHash, Error> {
    let work = async {
        let copy = core.grabs.images.image(key).local_copy().await?.ok_or(Error::Deleted)?;
        let picture = Picture { source: Source::File(copy), format: key.format() };
        hash(&core.tasks, &core.grabs.memory, picture).await
    };
    timeout(PHASH_LIMIT, work).await.map_err(|_| Error::TooSlow)?
}

/// The hash of an image in memory.
///
/// # Errors
/// See [`Error`].
pub(super) async fn of_bytes(core: &Core, image: Bytes, format: Format) -> Result<PerceptualHash, Error> {
    hash(&core.tasks, &core.grabs.memory, Picture { source: Source::Memory(image), format }).await
}

async fn hash(tasks: &TaskTracker, memory: &MemoryBudget, picture: Picture) -> Result<PerceptualHash, Error> {
    let look = move || {
        let (_, bytes) = picture.view().look()?;
        Ok((bytes.saturating_add(ROWS_BYTES), picture))
    };
    derived::run_within(tasks, memory, PHASH_LIMIT, look, |picture, stop| {
        Ok(PerceptualHash(perceptual_hash(picture.view(), &|| stop.is_cancelled())?))
    })
    .await
}

#[cfg(test)]
mod tests {
    use image::{ImageFormat, RgbImage};

    use super::*;

    #[tokio::test]
    async fn memory_for_decoding_is_taken_from_the_budget() {
        let (tasks, small, enough) = (TaskTracker::new(), MemoryBudget::new(1 << 20), MemoryBudget::new(8 << 20));
        let mut file = std::io::Cursor::new(Vec::new());
        RgbImage::new(640, 400).write_to(&mut file, ImageFormat::Jpeg).unwrap();
        let image = Bytes::from(file.into_inner());
        let picture = || Picture { source: Source::Memory(image.clone()), format: Format::Jpeg };
        assert!(matches!(hash(&tasks, &small, picture()).await, Err(Error::TooLarge)));
        assert!(hash(&tasks, &enough, picture()).await.is_ok());
    }
}
