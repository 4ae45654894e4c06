//! Numbered marks on a copy of the image (`also: ["marks"]`): the box of each element in `elements.json`, with its place in
//! that list. Models that see an image can name an element by its number. The page itself is not changed.

use std::io::Write;
use std::time::Duration;

use grabd_domain::capture::{AttachmentName, FileKind};
use grabd_domain::grabs::{FileKey, GrabFile, ImageKey, RenderMetadata};
use grabd_domain::limits::MARKS_LIMIT;
use grabd_images::LocalCopy;
use grabd_memory::MemoryBudget;
use grabd_pixels::{Region, draw_marks};
use serde::Deserialize;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::derived::{self, Derived, Error, Picture, Source};
use super::not_completed::NotCompleted;
use crate::random;
use crate::service::Core;

/// Memory for rows, marks and encoding.
const ROWS_BYTES: u64 = 4 << 20;

/// What is read of `elements.json`.
#[derive(Deserialize)]
struct ElementsFile {
    elements: Vec<Element>,
}

#[derive(Deserialize)]
struct Element {
    #[serde(rename = "box")]
    place: Area,
}

/// A rectangle in pixels of the image.
#[derive(Deserialize)]
struct Area {
    x: u32,
    y: u32,
    width: u32,
    height: u32,
}

/// Draws marks on a copy of a stored image, stores the copy beside it within the limit, and adds it to the metadata.
/// `scale` is the number of image pixels per CSS pixel: the size of the numbers follows it.
///
/// # Errors
/// See [`NotCompleted`]. A file that is left behind is deleted with the image.
pub(super) async fn add(
    core: &Core,
    key: &ImageKey,
    scale: u32,
    metadata: &mut RenderMetadata,
    limit: Duration,
) -> Result<(), NotCompleted> {
    let not_completed = |error: Error| error.not_completed(Derived::Marks);
    let images = &core.grabs.images;
    let load = async {
        let image = images.image(key).local_copy().await?.ok_or(Error::Deleted)?;
        let elements = images.attachment(key, AttachmentName::Also(FileKind::Elements)).local_copy().await?;
        Ok::<_, Error>((image, elements.ok_or(Error::Deleted)?))
    };
    let (image, elements) = timeout(MARKS_LIMIT, load)
        .await
        .map_err(|_| Error::TooSlow)
        .and_then(|loaded| loaded)
        .map_err(not_completed)?;
    let picture = Picture { source: Source::File(image), format: key.format() };
    let upload =
        images.begin_file(key, AttachmentName::Also(FileKind::Marks)).await.map_err(NotCompleted::NotStored)?;
    let upload =
        mark(&core.tasks, &core.grabs.memory, (picture, elements), scale, upload).await.map_err(not_completed)?;
    let bytes = upload.bytes();
    upload.finish(limit).await.map_err(NotCompleted::NotStored)?;
    let file = GrabFile { kind: FileKind::Marks, key: FileKey::new(random::random()), bytes };
    // In the order of kinds, in which files are listed.
    let place = metadata.files.partition_point(|other| other.kind < file.kind);
    metadata.files.insert(place, file);
    Ok(())
}

/// Draws marks, and writes the image to `to`, which is given back.
async fn mark<W: Write + Send + 'static>(
    tasks: &TaskTracker,
    memory: &MemoryBudget,
    (picture, elements): (Picture, LocalCopy),
    scale: u32,
    mut to: W,
) -> Result<W, Error> {
    let look = move || {
        let (size, bytes) = picture.view().look()?;
        let list = std::fs::metadata(elements.path()).map_err(Error::Unreadable)?.len();
        Ok((bytes.saturating_add(2 * list).saturating_add(ROWS_BYTES), (picture, size, elements)))
    };
    derived::run_within(tasks, memory, MARKS_LIMIT, look, move |(picture, size, elements), stop| {
        let list = std::fs::read(elements.path()).map_err(Error::Unreadable)?;
        let output = (&mut to as &mut dyn Write, FileKind::Marks.max_bytes());
        draw_marks(picture.view(), size, (&boxes(&list)?, scale), output, &|| stop.is_cancelled())?;
        Ok(to)
    })
    .await
}

/// The boxes of the elements in a list.
fn boxes(list: &[u8]) -> Result<Vec<Region>, Error> {
    let ElementsFile { elements } = serde_json::from_slice(list)?;
    let region = |Element { place: Area { x, y, width, height } }| Region { x, y, width, height };
    Ok(elements.into_iter().map(region).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_read_in_the_order_of_the_list() {
        let list = br#"{"image": {"width": 9, "height": 9}, "elements": [
            {"role": "link", "name": "a", "selector": null, "box": {"x": 1, "y": 2, "width": 3, "height": 4}},
            {"role": "button", "name": "b", "selector": "b", "box": {"x": 5, "y": 6, "width": 7, "height": 8}}]}"#;
        let found = boxes(list).unwrap();
        assert_eq!(found, [Region { x: 1, y: 2, width: 3, height: 4 }, Region { x: 5, y: 6, width: 7, height: 8 }]);
        assert!(matches!(boxes(b"[]"), Err(Error::InvalidElements(_))));
    }
}
