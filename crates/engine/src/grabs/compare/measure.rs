//! Compares two stored images within limits of memory and time.

use std::io::{ErrorKind, Write};

use grabd_domain::capture::FileKind;
use grabd_domain::grabs::{MAX_REGIONS, Region};
use grabd_domain::limits::COMPARE_LIMIT;
use grabd_memory::MemoryBudget;
use grabd_pixels::{Grid, Precision, Sheet, Size, Tolerance, changes, draw_changes};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::grabs::derived::{self, Error, Picture};

/// Memory for rows and for encoding.
const ROWS_BYTES: u64 = 4 << 20;

/// What changed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Changed {
    pub(super) ppm: u32,
    pub(super) regions: Vec<Region>,
}

impl Changed {
    fn of(grid: &Grid) -> Self {
        let region = |grabd_pixels::Region { x, y, width, height }| Region { x, y, width, height };
        Self { ppm: grid.changed_ppm(), regions: grid.regions(MAX_REGIONS).into_iter().map(region).collect() }
    }
}

/// Compares two images. If anything changed that counts, the image of the difference is written to `to`, which is given back.
///
/// # Errors
/// See [`Error`]. The work ends soon after the time limit.
pub(super) async fn measure<W: Write + Send + 'static>(
    tasks: &TaskTracker,
    memory: &MemoryBudget,
    (earlier, later): (Picture, Picture),
    tolerance: Tolerance,
    to: W,
) -> Result<(Changed, W), Error> {
    let look = move || look(earlier, later);
    derived::run_within(tasks, memory, COMPARE_LIMIT, look, move |(earlier, later), stop| {
        compare(&earlier, &later, &tolerance, to, stop)
    })
    .await
}

/// Compares two images without an image of the difference. The figures are those of [`measure`], if everything counts.
///
/// # Errors
/// As [`measure`].
pub(super) async fn figures(
    tasks: &TaskTracker,
    memory: &MemoryBudget,
    earlier: Picture,
    later: Picture,
) -> Result<Changed, Error> {
    let look = move || look(earlier, later);
    derived::run_within(tasks, memory, COMPARE_LIMIT, look, |(earlier, later), stop| {
        Ok(Changed::of(&changed_grid(&earlier, &later, stop)?))
    })
    .await
}

/// A picture and its size.
type Measured = (Picture, Size);

/// The memory that comparing two images takes, and both with their sizes.
fn look(earlier: Picture, later: Picture) -> Result<(u64, (Measured, Measured)), Error> {
    let (earlier_size, earlier_bytes) = earlier.view().look().map_err(|error| deleted(error.into()))?;
    let (size, bytes) = later.view().look()?;
    let sheets = [earlier_size, size].map(|Size { width, height }| Sheet::memory_bytes(width, height));
    let needed = earlier_bytes.max(bytes)
        + sheets.iter().sum::<u64>()
        + Grid::memory_bytes(size.width, size.height)
        + ROWS_BYTES;
    Ok((needed, ((earlier, earlier_size), (later, size))))
}

fn deleted(error: Error) -> Error {
    match matches!(&error, Error::Unreadable(error) if error.kind() == ErrorKind::NotFound) {
        true => Error::Deleted,
        false => error,
    }
}

/// Compares two images, and draws what changed.
fn compare<W: Write>(
    earlier: &Measured,
    later: &Measured,
    tolerance: &Tolerance,
    mut to: W,
    stop: &CancellationToken,
) -> Result<(Changed, W), Error> {
    let mut grid = changed_grid(earlier, later, stop)?;
    grid.apply_tolerance(tolerance);
    if grid.changed_ppm() > 0 {
        let (picture, size) = later;
        let limit = FileKind::Difference.max_bytes();
        draw_changes(picture.view(), *size, &grid.regions(MAX_REGIONS), (&mut to, limit), &|| stop.is_cancelled())?;
    }
    Ok((Changed::of(&grid), to))
}

/// What changed, in the cells of the later image.
fn changed_grid(
    (earlier, earlier_size): &Measured,
    (later, size): &Measured,
    stop: &CancellationToken,
) -> Result<Grid, Error> {
    let (earlier, later) = (earlier.view(), later.view());
    let is_stopped = || stop.is_cancelled();
    let precision = match earlier.is_lossless() && later.is_lossless() {
        true => Precision::Exact,
        false => Precision::Tolerant,
    };
    let width = earlier_size.width.min(size.width);
    let sheet = Sheet::read(earlier, precision, width, &is_stopped).map_err(|error| deleted(error.into()))?;
    Ok(changes(&sheet, *earlier_size, &Sheet::read(later, precision, width, &is_stopped)?, *size))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use bytes::Bytes;
    use grabd_domain::capture::Format;
    use grabd_domain::grabs::ImageKey;
    use grabd_images::Images;
    use grabd_pixels::PictureError;
    use image::{ImageFormat, Rgb, RgbImage};

    use super::*;
    use crate::grabs::derived::Source;

    fn picture(image: &RgbImage, format: Format) -> Picture {
        let mut file = Cursor::new(Vec::new());
        image.write_to(&mut file, ImageFormat::from_extension(format.as_str()).unwrap()).unwrap();
        Picture { source: Source::Memory(file.into_inner().into()), format }
    }

    async fn tolerated(earlier: Picture, later: Picture, tolerance: Tolerance) -> Result<(Changed, Vec<u8>), Error> {
        measure(&TaskTracker::new(), &MemoryBudget::new(64 << 20), (earlier, later), tolerance, Vec::new()).await
    }

    async fn measured(earlier: Picture, later: Picture) -> Result<(Changed, Vec<u8>), Error> {
        tolerated(earlier, later, Tolerance::default()).await
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
            // Without the drawing, the figures are the same.
            let budget = MemoryBudget::new(64 << 20);
            let only = figures(&TaskTracker::new(), &budget, picture(&earlier, one), picture(&later, other)).await;
            assert_eq!(only.unwrap(), changed, "{one:?} {other:?}");
        }
    }

    #[tokio::test]
    async fn what_does_not_count_is_neither_measured_nor_drawn() {
        let earlier = page(0);
        let mut later = earlier.clone();
        // A box of 64 x 32 pixels, and one pixel.
        (64..128).flat_map(|x| (96..128).map(move |y| (x, y))).for_each(|(x, y)| later.put_pixel(x, y, Rgb([9, 0, 0])));
        later.put_pixel(300, 20, Rgb([9, 0, 0]));
        let pictures = || (picture(&earlier, Format::Png), picture(&later, Format::Png));
        let area = |x, y, width, height| grabd_pixels::Region { x, y, width, height };
        for (ignored, min_region_px, expected) in [
            (vec![], 0, 2),
            (vec![], 257, 1),
            (vec![area(64, 96, 64, 32)], 0, 1),
            (vec![area(64, 96, 64, 32)], 257, 0),
            (vec![area(0, 0, 400, 300)], 0, 0),
        ] {
            let (one, other) = pictures();
            let (changed, file) = tolerated(one, other, Tolerance { ignored, min_region_px }).await.unwrap();
            assert_eq!(
                (changed.regions.len(), changed.ppm > 0, file.is_empty()),
                (expected, expected > 0, expected == 0)
            );
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
        let result = measure(&tasks, &MemoryBudget::new(1 << 20), (one, other), Tolerance::default(), Vec::new()).await;
        assert!(matches!(result, Err(Error::TooLarge)), "{result:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn comparison_waits_for_memory_no_longer_than_its_limit() {
        let memory = MemoryBudget::new(8 << 20);
        let _held = memory.reserve(7 << 20, COMPARE_LIMIT).await.unwrap();
        let (one, other) = (picture(&page(0), Format::Png), picture(&page(1), Format::Png));
        let result = measure(&TaskTracker::new(), &memory, (one, other), Tolerance::default(), Vec::new()).await;
        assert!(matches!(result, Err(Error::Busy | Error::TooSlow)), "{result:?}");
    }

    #[test]
    fn stopped_comparison_ends() {
        let stop = CancellationToken::new();
        stop.cancel();
        let look = |picture: Picture| {
            let (size, _) = picture.view().look().unwrap();
            (picture, size)
        };
        let (one, other) = (look(picture(&page(0), Format::Png)), look(picture(&page(1), Format::Png)));
        assert!(matches!(compare(&one, &other, &Tolerance::default(), Vec::new(), &stop), Err(Error::TooSlow)));
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
        let size = Size { width: 400, height: 300 };
        let picture = picture(&page(0), Format::Png);
        let result = draw_changes(picture.view(), size, &[], (&mut Vec::new(), 100), &|| false);
        assert!(matches!(result, Err(PictureError::DrawingTooLarge)), "{result:?}");
    }
}
