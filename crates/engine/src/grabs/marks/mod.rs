//! Numbered marks on a copy of the image (`also: ["marks"]`): the box of each element in `elements.json`, with its place in
//! that list. Models that see an image can name an element by its number.
//!
//! `labels` finds a place for each number, and `draw` draws them. The page itself is not changed.

mod area;
mod draw;
mod labels;

use std::cell::Cell;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::time::Duration;

use grabd_domain::capture::{BesideName, FileKind};
use grabd_domain::faults::ErrorCause;
use grabd_domain::grabs::{Failure, FailureReason, FileKey, GrabFile, ImageKey, RenderMetadata};
use grabd_domain::limits::MARKS_LIMIT;
use grabd_memory::{MemoryBudget, MemoryError};
use grabd_store::images::LocalCopy;
use image::ImageError;
use png::EncodingError;
use serde::Deserialize;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::area::Area;
use self::draw::Drawing;
use super::compare::measure::{Picture, Source};
use super::drawing::{self, Limited};
use super::not_completed::NotCompleted;
use super::pixels::{decoding_bytes, dimensions, read_rows};
use crate::core::Core;
use crate::random;

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

/// Why there are no marks.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("the image was deleted")]
    Deleted,
    #[error("other images took the memory or the time")]
    Busy,
    #[error("the image is too large for the memory of images")]
    TooLarge,
    #[error("the marked image is too large")]
    DrawingTooLarge,
    #[error("the image cannot be decoded")]
    Undecodable(#[from] ImageError),
    #[error("the image or its elements cannot be read")]
    Unreadable(#[source] io::Error),
    #[error("the list of elements is not valid")]
    InvalidElements(#[from] serde_json::Error),
    #[error(transparent)]
    Storage(#[from] grabd_store::images::Error),
    #[error("the marked image cannot be written")]
    Unwritable(#[source] io::Error),
    #[error("the marked image cannot be encoded")]
    Encoding(#[source] EncodingError),
    #[error("the task ended early")]
    Task(#[from] tokio::task::JoinError),
}

impl From<MemoryError> for Error {
    fn from(error: MemoryError) -> Self {
        match error {
            MemoryError::Busy => Self::Busy,
            MemoryError::TooLarge => Self::TooLarge,
        }
    }
}

impl From<EncodingError> for Error {
    fn from(error: EncodingError) -> Self {
        match error {
            EncodingError::IoError(error) => Self::Unwritable(error),
            error @ (EncodingError::Format(_) | EncodingError::Parameter(_) | EncodingError::LimitsExceeded) => {
                Self::Encoding(error)
            }
        }
    }
}

impl Error {
    /// The failure of a grab whose image has no marks. Errors of the service itself are logged.
    fn to_failure(&self) -> Failure {
        let failed = |message: String| Failure::new(FailureReason::RenderFailed, message);
        let smaller = "Use a lower scale, a smaller viewport, or max_height.";
        match self {
            Self::TooLarge => failed(format!("The image is too large for marks. {smaller}")),
            Self::DrawingTooLarge => {
                let megabytes = FileKind::Marks.max_bytes() >> 20;
                failed(format!("The image with marks would have more than {megabytes} MB. {smaller}"))
            }
            Self::Busy => failed(format!("The marks could not be drawn within {} s.", MARKS_LIMIT.as_secs()))
                .caused_by(ErrorCause::Service),
            Self::Deleted
            | Self::Undecodable(_)
            | Self::Unreadable(_)
            | Self::InvalidElements(_)
            | Self::Storage(_)
            | Self::Unwritable(_)
            | Self::Encoding(_)
            | Self::Task(_) => {
                tracing::error!(error = %self, source = ?std::error::Error::source(self), "marks were not drawn");
                failed("The marks could not be drawn, because of an error of the service.".to_owned())
                    .caused_by(ErrorCause::Service)
            }
        }
    }
}

impl From<Error> for NotCompleted {
    fn from(error: Error) -> Self {
        if let Error::Unwritable(error) = error {
            Self::NotStored(error.into())
        } else {
            Self::Failed(error.to_failure())
        }
    }
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
    let images = &core.grabs.images;
    let load = async {
        let image = images.image(key).local_copy().await?.ok_or(Error::Deleted)?;
        let elements = images.beside(key, BesideName::Also(FileKind::Elements)).local_copy().await?;
        Ok::<_, Error>((image, elements.ok_or(Error::Deleted)?))
    };
    let (image, elements) = timeout(MARKS_LIMIT, load).await.map_err(|_| Error::Busy)??;
    let picture = Picture { source: Source::File(image), format: key.format() };
    let upload = images.begin_file(key, BesideName::Also(FileKind::Marks)).await.map_err(NotCompleted::NotStored)?;
    let upload = mark(&core.tasks, &core.grabs.memory, (picture, elements), scale, upload).await?;
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
    to: W,
) -> Result<W, Error> {
    let stop = CancellationToken::new();
    // Also when the caller stops waiting.
    let _stop = stop.clone().drop_guard();
    let work = async {
        let look = tasks.spawn_blocking(move || {
            let size = dimensions(picture.open().map_err(Error::Unreadable)?, picture.format)?;
            let (image, list) = (picture.file_bytes(), std::fs::metadata(elements.path()).map(|file| file.len()));
            let (image, list) = (image.map_err(Error::Unreadable)?, list.map_err(Error::Unreadable)?);
            let needed = decoding_bytes(size.0, size.1, picture.format, image).saturating_add(2 * list);
            Ok::<_, Error>((needed, size, picture, elements))
        });
        let (needed, size, picture, elements) = look.await??;
        let memory = memory.reserve(needed.saturating_add(ROWS_BYTES), MARKS_LIMIT).await?;
        let drawn = tasks.spawn_blocking(move || {
            let _memory = memory;
            let list = std::fs::read(elements.path()).map_err(Error::Unreadable)?;
            let boxes = boxes(&list)?;
            let mut to = to;
            encode((&picture, size), &boxes, scale, &mut to, &stop)?;
            Ok::<_, Error>(to)
        });
        drawn.await?
    };
    timeout(MARKS_LIMIT, work).await.map_err(|_| Error::Busy)?
}

/// The boxes of the elements in a list.
fn boxes(list: &[u8]) -> Result<Vec<Area>, Error> {
    let ElementsFile { elements } = serde_json::from_slice(list)?;
    Ok(elements.into_iter().map(|element| element.place).collect())
}

fn encode(
    (picture, (width, height)): (&Picture, (u32, u32)),
    boxes: &[Area],
    scale: u32,
    to: impl Write,
    stop: &CancellationToken,
) -> Result<(), Error> {
    let is_exceeded = Cell::new(false);
    let limited = Limited::new(to, FileKind::Marks.max_bytes(), &is_exceeded);
    let draw = || {
        let mut png = drawing::begin(width, height, limited)?;
        let mut drawing = Drawing::new(&mut png, (width, height), boxes, scale)?;
        let mut result = Ok(());
        let file = picture.open().map_err(Error::Unreadable)?;
        read_rows(
            file,
            picture.format,
            |layout| layout.channels,
            |channels, row| {
                result = if stop.is_cancelled() {
                    Err(Error::Busy)
                } else {
                    drawing.push(row, *channels).map_err(Error::from)
                };
                if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            },
        )?;
        result?;
        drawing.finish()?;
        Ok(png.finish()?)
    };
    let drawn = draw();
    if is_exceeded.get() { Err(Error::DrawingTooLarge) } else { drawn }
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
        assert_eq!(found, [Area { x: 1, y: 2, width: 3, height: 4 }, Area { x: 5, y: 6, width: 7, height: 8 }]);
        assert!(matches!(boxes(b"[]"), Err(Error::InvalidElements(_))));
    }
}
