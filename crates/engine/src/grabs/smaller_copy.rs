//! The smaller copy of the image that a grab asks for (`thumbnail`).

use std::time::Duration;

use bytes::Bytes;
use grabd_domain::capture::{AttachmentName, FileKind, Thumbnail};
use grabd_domain::grabs::{FileKey, GrabFile, ImageKey, RenderMetadata};
use grabd_domain::limits::THUMBNAIL_LIMIT;
use grabd_memory::MemoryBudget;
use grabd_pixels::shrink_to;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::derived::{self, Derived, Error, Picture, Source};
use super::not_completed::NotCompleted;
use crate::placeholder::pixel_target;
use crate::random;
use crate::service::Core;

/// Makes a smaller copy of a stored image, stores it beside the image within the limit, and adds it to the metadata.
///
/// # Errors
/// See [`NotCompleted`]. A file that is left behind is deleted with the image.
pub(super) async fn add(
    core: &Core,
    key: &ImageKey,
    thumbnail: Thumbnail,
    metadata: &mut RenderMetadata,
    limit: Duration,
) -> Result<(), NotCompleted> {
    let made = of_stored(core, key, thumbnail).await;
    let content = made.map_err(|error| error.not_completed(Derived::Thumbnail))?;
    let name = AttachmentName::Also(FileKind::Thumbnail);
    let mut upload = core.grabs.images.begin_file(key, name).await.map_err(NotCompleted::NotStored)?;
    upload.write(content).await.map_err(NotCompleted::NotStored)?;
    let bytes = upload.bytes();
    upload.finish(limit).await.map_err(NotCompleted::NotStored)?;
    // The last of the kinds, in whose order files are listed.
    metadata.files.push(GrabFile { kind: FileKind::Thumbnail, key: FileKey::new(random::random()), bytes });
    Ok(())
}

/// The smaller copy of a stored image.
async fn of_stored(core: &Core, key: &ImageKey, thumbnail: Thumbnail) -> Result<Bytes, Error> {
    let work = async {
        let copy = core.grabs.images.image(key).local_copy().await?.ok_or(Error::Deleted)?;
        let picture = Picture { source: Source::File(copy), format: key.format() };
        make(&core.tasks, &core.grabs.memory, picture, thumbnail).await
    };
    timeout(THUMBNAIL_LIMIT, work).await.map_err(|_| Error::TooSlow)?
}

async fn make(
    tasks: &TaskTracker,
    memory: &MemoryBudget,
    picture: Picture,
    thumbnail: Thumbnail,
) -> Result<Bytes, Error> {
    let target = pixel_target(thumbnail);
    let look = move || {
        let (_, bytes) = picture.view().look()?;
        Ok((bytes.saturating_add(target.memory_bytes()), picture))
    };
    derived::run_within(tasks, memory, THUMBNAIL_LIMIT, look, move |picture, stop| {
        Ok(Bytes::from(shrink_to(picture.view(), target, &|| stop.is_cancelled())?))
    })
    .await
}

#[cfg(test)]
mod tests {
    use grabd_domain::capture::{Format, ThumbnailFit};
    use image::{ImageFormat, RgbImage};

    use super::*;

    #[tokio::test]
    async fn copy_has_the_asked_size_and_memory_of_the_budget() {
        let (tasks, small, enough) = (TaskTracker::new(), MemoryBudget::new(1 << 20), MemoryBudget::new(16 << 20));
        let mut file = std::io::Cursor::new(Vec::new());
        RgbImage::new(640, 400).write_to(&mut file, ImageFormat::Png).unwrap();
        let image = Bytes::from(file.into_inner());
        let picture = || Picture { source: Source::Memory(image.clone()), format: Format::Png };
        for (fit, size) in [(ThumbnailFit::Contain, (100, 62)), (ThumbnailFit::Cover, (100, 100))] {
            let thumbnail = Thumbnail { width: 100, height: 100, fit };
            assert!(matches!(make(&tasks, &small, picture(), thumbnail).await, Err(Error::TooLarge)));
            let made = make(&tasks, &enough, picture(), thumbnail).await.unwrap();
            let made = image::load_from_memory_with_format(&made, ImageFormat::Jpeg).unwrap();
            assert_eq!((made.width(), made.height()), size);
        }
    }
}
