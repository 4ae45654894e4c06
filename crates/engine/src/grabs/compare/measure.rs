//! Compares two stored images within limits of memory and time.

use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Seek, Write};
use std::ops::ControlFlow;

use bytes::Bytes;
use grabd_domain::capture::{FileKind, Format};
use grabd_domain::faults::ErrorCause;
use grabd_domain::grabs::{Failure, FailureReason, Region};
use grabd_domain::limits::COMPARE_LIMIT;
use grabd_memory::{MemoryBudget, MemoryError};
use grabd_store::images::LocalCopy;
use image::ImageError;
use png::EncodingError;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::changes::{Size, changes};
use super::draw::Drawing;
use super::grid::Grid;
use super::sheet::{Precision, Sheet};
use crate::grabs::drawing::{self, Limited};
use crate::grabs::pixels::{Layout, decoding_bytes, dimensions, read_rows};
use crate::placeholder;

/// Memory for rows and for encoding.
const ROWS_BYTES: u64 = 4 << 20;

/// A stored image.
pub(crate) struct Picture {
    pub(crate) source: Source,
    pub(crate) format: Format,
}

/// Where an image is.
pub(crate) enum Source {
    File(LocalCopy),
    Memory(Bytes),
}

/// What changed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Changed {
    pub(super) ppm: u32,
    pub(super) regions: Vec<Region>,
}

/// Why two images were not compared.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The earlier image was deleted.
    #[error("the earlier image was deleted")]
    Deleted,
    /// Other images took the memory.
    #[error("other images take the memory")]
    Busy,
    /// More memory than all images together may take.
    #[error("the images are too large")]
    TooLarge,
    /// The time limit has passed.
    #[error("the comparison took too long")]
    TooSlow,
    /// The image of the difference would be larger than a file may be.
    #[error("the image of the difference is too large")]
    DrawingTooLarge,
    /// One of the images cannot be decoded.
    #[error("an image cannot be decoded")]
    Undecodable(#[from] ImageError),
    /// One of the images cannot be read.
    #[error("an image cannot be read")]
    Unreadable(#[source] io::Error),
    /// One of the images cannot be loaded from the storage.
    #[error(transparent)]
    Storage(#[from] grabd_store::images::Error),
    /// The image of the difference cannot be written.
    #[error("the image of the difference cannot be written")]
    Unwritable(#[source] io::Error),
    /// A defect of the encoder.
    #[error("the image of the difference cannot be encoded")]
    Encoding(#[source] EncodingError),
    /// A placeholder could not be drawn.
    #[error(transparent)]
    Placeholder(#[from] placeholder::Error),
    /// The earlier grab could not be looked up.
    #[error(transparent)]
    Store(#[from] grabd_store::Error),
    /// The task panicked, or the service is stopping.
    #[error("the task ended early")]
    Task(#[from] tokio::task::JoinError),
}

impl Error {
    /// Whether trying again in a few seconds may help.
    pub(crate) const fn is_busy(&self) -> bool {
        matches!(self, Self::Busy | Self::TooSlow | Self::Placeholder(placeholder::Error::Busy))
    }

    /// The failure of a grab that could not be compared. Errors of the service itself are logged.
    pub(super) fn to_failure(&self) -> Failure {
        let failed = |message: String| Failure::new(FailureReason::RenderFailed, message);
        let limit = COMPARE_LIMIT.as_secs();
        let megabytes = FileKind::Difference.max_bytes() >> 20;
        let smaller = "Use a lower scale, a smaller viewport, or max_height.";
        match self {
            Self::Deleted => {
                let message = "The image of the grab in compare_to was deleted before it was compared.".to_owned();
                failed(message).caused_by(ErrorCause::Request)
            }
            Self::TooLarge => failed(format!("The images are too large to be compared. {smaller}")),
            Self::DrawingTooLarge => {
                failed(format!("The image of the difference would have more than {megabytes} MB. {smaller}"))
            }
            Self::TooSlow => {
                let message = format!("The images could not be compared within {limit} s.");
                failed(message).caused_by(ErrorCause::Service)
            }
            Self::Busy | Self::Placeholder(placeholder::Error::Busy) => {
                let message = "The images could not be compared, because other images take the memory.".to_owned();
                failed(message).caused_by(ErrorCause::Service)
            }
            error @ (Self::Undecodable(_)
            | Self::Unreadable(_)
            | Self::Unwritable(_)
            | Self::Encoding(_)
            | Self::Placeholder(_)
            | Self::Storage(_)
            | Self::Store(_)
            | Self::Task(_)) => {
                tracing::error!(error = %error, source = ?std::error::Error::source(error), "images were not compared");
                let message = "The images could not be compared, because of an error of the service.".to_owned();
                failed(message).caused_by(ErrorCause::Service)
            }
        }
    }
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

/// A file that is read from its beginning to its end.
pub(crate) trait Readable: BufRead + Seek {}

impl<T: BufRead + Seek> Readable for T {}

impl Picture {
    /// Opens it, to be read from its beginning.
    pub(crate) fn open(&self) -> io::Result<Box<dyn Readable>> {
        match &self.source {
            Source::File(file) => Ok(Box::new(BufReader::new(std::fs::File::open(file.path())?))),
            Source::Memory(bytes) => Ok(Box::new(Cursor::new(bytes.clone()))),
        }
    }

    /// The memory that reading the whole file takes.
    pub(crate) fn file_bytes(&self) -> io::Result<u64> {
        match &self.source {
            Source::File(file) => Ok(std::fs::metadata(file.path())?.len()),
            // It is there already.
            Source::Memory(_) => Ok(0),
        }
    }

    /// The size in pixels, and the memory that decoding takes.
    fn look(&self) -> Result<(Size, u64), Error> {
        let (width, height) = dimensions(self.open().map_err(Error::Unreadable)?, self.format)?;
        let file_bytes = self.file_bytes().map_err(Error::Unreadable)?;
        Ok((Size { width, height }, decoding_bytes(width, height, self.format, file_bytes)))
    }

    fn is_lossless(&self) -> bool {
        match self.format {
            Format::Png => true,
            Format::Jpeg | Format::Webp => false,
        }
    }
}

/// Compares two images. If anything changed, the image of the difference is written to `to`, which is given back.
///
/// # Errors
/// See [`Error`]. The work ends soon after the time limit.
pub(super) async fn measure<W: Write + Send + 'static>(
    tasks: &TaskTracker,
    memory: &MemoryBudget,
    earlier: Picture,
    later: Picture,
    to: W,
) -> Result<(Changed, W), Error> {
    let stop = CancellationToken::new();
    // Also when the caller stops waiting.
    let _stop = stop.clone().drop_guard();
    let work = async {
        let look = tasks.spawn_blocking(move || {
            let seen = earlier.look().map_err(deleted)?;
            Ok::<_, Error>((seen, later.look()?, earlier, later))
        });
        let ((earlier_size, earlier_bytes), (size, bytes), earlier, later) = look.await??;
        let sheets = [earlier_size, size].map(|Size { width, height }| Sheet::memory_bytes(width, height));
        let needed = earlier_bytes.max(bytes)
            + sheets.iter().sum::<u64>()
            + Grid::memory_bytes(size.width, size.height)
            + ROWS_BYTES;
        let memory = memory.reserve(needed, COMPARE_LIMIT).await?;
        let compared = tasks.spawn_blocking(move || {
            let _memory = memory;
            compare(&(earlier, earlier_size), &(later, size), to, &stop)
        });
        compared.await?
    };
    timeout(COMPARE_LIMIT, work).await.map_err(|_| Error::TooSlow)?
}

fn deleted(error: Error) -> Error {
    match matches!(&error, Error::Unreadable(error) if error.kind() == ErrorKind::NotFound) {
        true => Error::Deleted,
        false => error,
    }
}

fn compare<W: Write>(
    (earlier, earlier_size): &(Picture, Size),
    (later, size): &(Picture, Size),
    mut to: W,
    stop: &CancellationToken,
) -> Result<(Changed, W), Error> {
    let precision = match earlier.is_lossless() && later.is_lossless() {
        true => Precision::Exact,
        false => Precision::Tolerant,
    };
    let width = earlier_size.width.min(size.width);
    let sheet = |picture: &Picture| {
        let begin = |layout| Sheet::new(precision, layout, width);
        rows(picture, stop, begin, |sheet, row| {
            sheet.push(row);
            Ok(())
        })
    };
    let earlier = sheet(earlier).map_err(deleted)?;
    let grid = changes(&earlier, *earlier_size, &sheet(later)?, *size);
    drop(earlier);
    let changed = Changed { ppm: grid.changed_ppm(), regions: grid.regions() };
    if changed.ppm > 0 {
        draw((later, *size), &changed.regions, (&mut to, FileKind::Difference.max_bytes()), stop)?;
    }
    Ok((changed, to))
}

fn draw(
    (picture, size): (&Picture, Size),
    regions: &[Region],
    (to, max_bytes): (impl Write, u64),
    stop: &CancellationToken,
) -> Result<(), Error> {
    let is_exceeded = Cell::new(false);
    let limited = Limited::new(to, max_bytes, &is_exceeded);
    let drawn = encode((picture, size), regions, limited, stop);
    if is_exceeded.get() { Err(Error::DrawingTooLarge) } else { drawn }
}

fn encode(
    (picture, size): (&Picture, Size),
    regions: &[Region],
    to: impl Write,
    stop: &CancellationToken,
) -> Result<(), Error> {
    let mut png = drawing::begin(size.width, size.height, to)?;
    let mut drawing = Drawing::new(&mut png, (size.width, size.height), regions)?;
    let channels = |layout: Layout| layout.channels;
    rows(picture, stop, channels, |channels, row| Ok(drawing.push(row, *channels)?))?;
    drawing.finish()?;
    Ok(png.finish()?)
}

/// Passes the rows of an image to `each`, until it fails or the work is stopped.
fn rows<T>(
    picture: &Picture,
    stop: &CancellationToken,
    begin: impl FnOnce(Layout) -> T,
    mut each: impl FnMut(&mut T, &[u8]) -> Result<(), Error>,
) -> Result<T, Error> {
    let file = picture.open().map_err(Error::Unreadable)?;
    let mut failed = None;
    let state = read_rows(file, picture.format, begin, |state, row| {
        let result = if stop.is_cancelled() { Err(Error::TooSlow) } else { each(state, row) };
        match result {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    })?;
    failed.map_or(Ok(state), Err)
}

#[cfg(test)]
mod tests {
    use grabd_domain::grabs::ImageKey;
    use grabd_store::Images;
    use image::{ImageFormat, Rgb, RgbImage};

    use super::*;

    fn picture(image: &RgbImage, format: Format) -> Picture {
        let mut file = Cursor::new(Vec::new());
        image.write_to(&mut file, ImageFormat::from_extension(format.as_str()).unwrap()).unwrap();
        Picture { source: Source::Memory(file.into_inner().into()), format }
    }

    async fn measured(earlier: Picture, later: Picture) -> Result<(Changed, Vec<u8>), Error> {
        measure(&TaskTracker::new(), &MemoryBudget::new(64 << 20), earlier, later, Vec::new()).await
    }

    /// Lines of dark squares on white, as text is.
    fn page(seed: u32) -> RgbImage {
        RgbImage::from_fn(400, 300, |x, y| match (y / 10 % 2, (x / 4 * 7 + y / 20 * 13 + seed) % 5) {
            (1, 0..3) => Rgb([30, 40, 50]),
            (_, _) => Rgb([255; 3]),
        })
    }

    #[tokio::test]
    async fn changed_box_is_found_in_all_formats_and_the_same_page_is_not() {
        let earlier = page(0);
        let mut later = earlier.clone();
        (100..140)
            .flat_map(|x| (80..110).map(move |y| (x, y)))
            .for_each(|(x, y)| later.put_pixel(x, y, Rgb([200, 0, 0])));
        let formats = [Format::Png, Format::Jpeg, Format::Webp];
        for (one, other) in formats.into_iter().flat_map(|one| formats.map(|other| (one, other))) {
            let (same, file) = measured(picture(&earlier, one), picture(&earlier, other)).await.unwrap();
            assert_eq!((same, file.len()), (Changed { ppm: 0, regions: vec![] }, 0), "{one:?} {other:?}");
            let (changed, file) = measured(picture(&earlier, one), picture(&later, other)).await.unwrap();
            let Region { x, y, width, height } = changed.regions[0];
            let is_close = changed.regions.len() == 1
                && [(x, 96), (y, 80), (x + width, 144), (y + height, 112)]
                    .iter()
                    .all(|(is, at)| is.abs_diff(*at) <= 16);
            assert!(is_close, "{one:?} {other:?}: {changed:?}");
            let drawn = image::load_from_memory_with_format(&file, ImageFormat::Png).unwrap();
            assert_eq!((drawn.width(), drawn.height()), (400, 300));
        }
    }

    #[tokio::test]
    async fn insertion_into_a_lossy_image_does_not_change_what_is_below() {
        // Not a multiple of the blocks of JPEG.
        let rows = 37;
        let earlier = page(0);
        let later = RgbImage::from_fn(400, 300 + rows, |x, y| match y.checked_sub(rows) {
            Some(y) => *earlier.get_pixel(x, y),
            None => Rgb([0, 90, 200]),
        });
        let (changed, _) = measured(picture(&earlier, Format::Jpeg), picture(&later, Format::Jpeg)).await.unwrap();
        assert!(changed.ppm < 200_000, "{changed:?}");
        assert_eq!((changed.regions[0].y, changed.regions[0].width), (0, 400), "{changed:?}");
    }

    #[tokio::test]
    async fn comparison_that_needs_too_much_memory_fails() {
        let tasks = TaskTracker::new();
        let (one, other) = (picture(&page(0), Format::Png), picture(&page(1), Format::Png));
        let result = measure(&tasks, &MemoryBudget::new(1 << 20), one, other, Vec::new()).await;
        assert!(matches!(result, Err(Error::TooLarge)), "{result:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn comparison_waits_for_memory_no_longer_than_its_limit() {
        let memory = MemoryBudget::new(8 << 20);
        let _held = memory.reserve(7 << 20, COMPARE_LIMIT).await.unwrap();
        let (one, other) = (picture(&page(0), Format::Png), picture(&page(1), Format::Png));
        let result = measure(&TaskTracker::new(), &memory, one, other, Vec::new()).await;
        assert!(matches!(result, Err(Error::Busy | Error::TooSlow)), "{result:?}");
    }

    #[test]
    fn stopped_comparison_ends() {
        let stop = CancellationToken::new();
        stop.cancel();
        let look = |picture: Picture| {
            let (size, _) = picture.look().unwrap();
            (picture, size)
        };
        let (one, other) = (look(picture(&page(0), Format::Png)), look(picture(&page(1), Format::Png)));
        assert!(matches!(compare(&one, &other, Vec::new(), &stop), Err(Error::TooSlow)));
    }

    #[tokio::test]
    async fn missing_and_broken_images_are_distinguished() {
        let dir = tempfile::tempdir().unwrap();
        let (images, key) = (Images::local(dir.path().to_owned()).unwrap(), ImageKey::new(1, "png"));
        // Deleted after it was found.
        let missing = async || {
            images.put(&key, Bytes::from_static(b"x"), COMPARE_LIMIT).await.unwrap();
            let source = Source::File(images.image(&key).local_copy().await.unwrap().unwrap());
            images.delete(&key).await.unwrap();
            Picture { source, format: Format::Png }
        };
        let broken = || Picture { source: Source::Memory(Bytes::from_static(b"<svg>")), format: Format::Png };
        let fine = || picture(&page(0), Format::Png);
        assert!(matches!(measured(missing().await, fine()).await, Err(Error::Deleted)));
        assert!(matches!(measured(fine(), missing().await).await, Err(Error::Unreadable(_))));
        assert!(matches!(measured(broken(), fine()).await, Err(Error::Undecodable(_))));
    }

    #[test]
    fn image_of_a_difference_that_is_too_large_is_reported() {
        let stop = CancellationToken::new();
        let size = Size { width: 400, height: 300 };
        let result = draw((&picture(&page(0), Format::Png), size), &[], (Vec::new(), 100), &stop);
        assert!(matches!(result, Err(Error::DrawingTooLarge)), "{result:?}");
    }
}
