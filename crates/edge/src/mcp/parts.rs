//! The parts of a tall image in a tool result: as one preview, it would be too small to read.

use grabd_pixels::{Rows, encode_jpeg, image_on_white, is_uniform, plan};
use image::imageops::FilterType;
use image::{DynamicImage, ImageError};

/// The most parts of a result, and the most bytes of one and of all together. They leave room for the rest of the result,
/// which has many slices.
const MAX_PARTS: usize = 4;
const MAX_PART_BYTES: usize = 270_000;
const MAX_BYTES: usize = 540_000;
/// Width and height of a part in pixels, at most.
const MAX_WIDTH_PX: u32 = 1280;
const MAX_HEIGHT_PX: u32 = 1568;
/// JPEG qualities of parts, tried in this order until one is small enough.
const READABLE: [(u32, u8); 3] = [(1, 85), (1, 70), (1, 50)];
/// Divisors of the size and JPEG qualities of a first part that does not compress, so that something is shown.
const SMALLER: [(u32, u8); 2] = [(2, 60), (4, 50)];
/// Memory for the encoded parts and for those in the size of the result.
const SMALL_BYTES: u64 = 16 << 20;

/// Which parts of an image are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WantedParts {
    /// The first row.
    pub(super) from_row: u32,
    /// The parts that the image is cut into already. Empty: cut it where it is readable.
    pub(super) cuts: Vec<Rows>,
}

/// A part of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) rows: Rows,
    /// The encoded JPEG.
    pub(super) file: Vec<u8>,
}

/// Whether an image can be read in a preview whose longest side has `side` pixels: it is at most half as large as on a
/// screen. The page was laid out in `css_width` pixels.
pub(super) fn is_readable((width, height): (u32, u32), css_width: u32, side: u32) -> bool {
    let longest = width.max(height);
    let shown = u64::from(width) * u64::from(side) / u64::from(longest.max(1));
    longest <= 2 * side || shown * 2 >= u64::from(css_width.min(width))
}

/// The memory that [`cut`] takes beside the decoded image, in bytes.
pub(super) fn memory_bytes(width: u32, wanted: &WantedParts) -> u64 {
    let rows = wanted.cuts.iter().map(|rows| rows.height).max().unwrap_or(0).max(rows_of_part(width));
    u64::from(width).saturating_mul(rows.into()).saturating_mul(4).saturating_add(SMALL_BYTES)
}

/// The largest height of a part, in pixels of the image: in the result, it is as high as wide.
fn rows_of_part(width: u32) -> u32 {
    width.max(MAX_WIDTH_PX)
}

/// The first of the wanted parts, which have at most this many bytes together. May take seconds of CPU time.
///
/// # Errors
/// If a part cannot be encoded.
pub(super) fn cut(image: &DynamicImage, wanted: &WantedParts, max_bytes: usize) -> Result<Vec<Part>, ImageError> {
    let planned = match wanted.cuts.is_empty() {
        true => plan_from(image, wanted.from_row),
        false => wanted.cuts.clone(),
    };
    let (mut parts, mut left) = (Vec::new(), max_bytes.min(MAX_BYTES));
    for rows in planned.into_iter().filter(|rows| rows.end() > wanted.from_row).take(MAX_PARTS) {
        let smaller = SMALLER.get(..if parts.is_empty() { SMALLER.len() } else { 0 }).unwrap_or_default();
        match encode(image, rows, &[&READABLE, smaller].concat(), left.min(MAX_PART_BYTES))? {
            Some(file) => {
                left -= file.len();
                parts.push(Part { rows, file });
            }
            None => break,
        }
    }
    Ok(parts)
}

/// Readable parts from a row on.
fn plan_from(image: &DynamicImage, from_row: u32) -> Vec<Rows> {
    let channels = usize::from(image.color().bytes_per_pixel());
    let row_bytes = usize::try_from(image.width()).unwrap_or(usize::MAX).saturating_mul(channels);
    let row = |row: u32| {
        let start = usize::try_from(row).ok()?.checked_mul(row_bytes)?;
        image.as_bytes().get(start..start.checked_add(row_bytes)?)
    };
    let is_uniform = |y: u32| row(from_row + y).is_some_and(|row| is_uniform(row, channels));
    let planned = plan(image.height().saturating_sub(from_row), rows_of_part(image.width()), is_uniform);
    planned.unwrap_or_default().into_iter().map(|rows| Rows { y: from_row + rows.y, ..rows }).collect()
}

/// Some rows of an image as a JPEG of at most this size, with the first of these divisors and qualities. `None` if that
/// is impossible.
fn encode(
    image: &DynamicImage,
    rows: Rows,
    attempts: &[(u32, u8)],
    most: usize,
) -> Result<Option<Vec<u8>>, ImageError> {
    let mut part = image.crop_imm(0, rows.y, image.width(), rows.height);
    for &(divisor, quality) in attempts {
        let (width, height) = (MAX_WIDTH_PX / divisor, MAX_HEIGHT_PX / divisor);
        if part.width() > width || part.height() > height {
            part = part.resize(width, height, FilterType::Triangle);
        }
        let file = encode_jpeg(&image_on_white(&part), quality)?;
        if file.len() <= most {
            return Ok(Some(file));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use image::{Rgb, RgbImage};

    use super::*;

    fn cut(image: &DynamicImage, wanted: &WantedParts) -> Result<Vec<Part>, ImageError> {
        super::cut(image, wanted, MAX_BYTES)
    }

    fn shown(part: &Part) -> RgbImage {
        image::load_from_memory(&part.file).unwrap().into_rgb8()
    }

    /// Lines of 20 rows, with a uniform row between them.
    fn lines(width: u32, height: u32) -> DynamicImage {
        let color = |x: u32, y: u32| if y % 20 == 19 || x % 320 < 160 { Rgb([250; 3]) } else { Rgb([30; 3]) };
        RgbImage::from_fn(width, height, color).into()
    }

    fn noise(width: u32, height: u32) -> DynamicImage {
        let seed = |x: u32, y: u32| (x + width * y).wrapping_mul(2_654_435_761);
        RgbImage::from_fn(width, height, |x, y| Rgb([8, 16, 24].map(|shift| (seed(x, y) >> shift) as u8))).into()
    }

    #[test]
    fn images_are_readable_unless_they_are_shrunk_to_less_than_half() {
        for (size, css_width, expected) in [
            ((1280, 720), 1280, true),
            ((1280, 2560), 1280, true),
            ((1280, 2600), 1280, false),
            ((1280, 16_384), 1280, false),
            ((1170, 6000), 390, true),
            ((1170, 9000), 390, false),
            ((960, 3240), 320, true),
            ((300, 5000), 1280, false),
            ((200, 1400), 1280, true),
        ] {
            assert_eq!(is_readable(size, css_width, 1280), expected, "{size:?}");
        }
    }

    #[test]
    fn parts_begin_at_a_row_and_follow_each_other() {
        let image = lines(1280, 9000);
        let parts = cut(&image, &WantedParts::default()).unwrap();
        assert_eq!(parts.len(), MAX_PARTS);
        let rows: Vec<_> = parts.iter().map(|part| (part.rows.y, part.rows.height)).collect();
        assert_eq!(rows, [(0, 1280), (1280, 1280), (2560, 1280), (3840, 1280)]);
        assert_eq!(shown(&parts[1]).dimensions(), (1280, 1280));
        let next = cut(&image, &WantedParts { from_row: 8010, cuts: Vec::new() }).unwrap();
        assert_eq!(next.iter().map(|part| (part.rows.y, part.rows.height)).collect::<Vec<_>>(), [(8010, 990)]);
        let odd = cut(&image, &WantedParts { from_row: 5, cuts: Vec::new() }).unwrap();
        assert_eq!(odd[0].rows, Rows { y: 5, height: 1275 }, "it ends between two lines");
        for from_row in [9000, 20_000, u32::MAX] {
            assert_eq!(cut(&image, &WantedParts { from_row, cuts: Vec::new() }).unwrap(), []);
        }
    }

    #[test]
    fn cuts_are_kept_and_wide_parts_are_scaled() {
        let cuts = vec![Rows { y: 0, height: 1900 }, Rows { y: 1900, height: 1100 }];
        let parts = cut(&lines(2560, 3000), &WantedParts { from_row: 1899, cuts: cuts.clone() }).unwrap();
        assert_eq!(parts.iter().map(|part| part.rows).collect::<Vec<_>>(), cuts, "the row is in the first one");
        assert_eq!((shown(&parts[0]).dimensions(), shown(&parts[1]).dimensions()), ((1280, 950), (1280, 550)));
        let parts = cut(&lines(2560, 3000), &WantedParts { from_row: 1900, cuts }).unwrap();
        assert_eq!(parts.len(), 1);
    }

    #[test]
    fn only_a_first_part_that_does_not_compress_is_made_smaller() {
        let parts = cut(&noise(640, 2600), &WantedParts::default()).unwrap();
        let [part] = &parts[..] else { panic!("{} parts", parts.len()) };
        assert!(part.file.len() <= MAX_PART_BYTES && shown(part).width() < 640, "{:?}", shown(part).dimensions());
    }

    #[test]
    fn parts_end_before_one_that_would_not_be_readable_in_what_is_left() {
        let image = lines(640, 2560);
        let all = super::cut(&image, &WantedParts::default(), MAX_BYTES).unwrap();
        assert_eq!(all.len(), 2);
        // Enough for the second one only if it were made smaller.
        let most = all[0].file.len() + all[1].file.len() / 8;
        assert_eq!(super::cut(&image, &WantedParts::default(), most).unwrap(), all[..1]);
    }
}
