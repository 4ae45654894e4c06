//! Scales an image, or its top, down to the size of a thumbnail.
//!
//! Rows are added up as they are decoded, and what is below the thumbnail of a PNG is not decoded.

use std::ops::ControlFlow;

use image::RgbImage;

use crate::picture::{Picture, PictureError};
use crate::rgb::{encode_jpeg, on_white};
use crate::rows::Layout;

/// Maximum width of a thumbnail in pixels.
pub const THUMBNAIL_WIDTH: u32 = 480;
/// Maximum height of a thumbnail in pixels.
pub const THUMBNAIL_HEIGHT: u32 = 270;

/// Memory for rows, the thumbnail and its encoder, besides that for decoding the image.
pub const THUMBNAIL_BYTES: u64 = 4 << 20;
/// At lower quality, small images of text become hard to distinguish.
const JPEG_QUALITY: u8 = 82;

/// What a thumbnail shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The top of images that are longer than a thumbnail.
    Top,
    /// The whole image.
    Whole,
}

/// The size of a smaller copy of an image, in pixels, and what it shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The largest width.
    pub width: u32,
    /// The largest height.
    pub height: u32,
    /// Whether the copy shows only the part of the image that has its shape: the top, and the middle of each row.
    pub is_cut: bool,
}

impl Target {
    /// Memory for rows, the copy and its encoder, besides that for decoding the image.
    pub fn memory_bytes(self) -> u64 {
        THUMBNAIL_BYTES + u64::from(self.width) * u64::from(self.height) * 6
    }
}

/// Scales an image down to thumbnail size, as a JPEG. Small images keep their size.
///
/// # Errors
/// When the image cannot be read.
pub fn shrink(picture: Picture<'_>, part: Part) -> Result<Vec<u8>, PictureError> {
    let begin =
        |Layout { width, height, channels }: Layout| Scaler::new(width, channels, Plan::of_part(width, height, part));
    let scaler = picture.first_rows(begin, |scaler, row| {
        scaler.push(row);
        if scaler.is_done() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(encode_jpeg(&scaler.finish(), JPEG_QUALITY)?)
}

/// Scales an image down to this size, as a JPEG. Small images keep their size, but are cut to its shape if that is asked for.
///
/// # Errors
/// When the image cannot be read, and when the work is stopped.
pub fn shrink_to(picture: Picture<'_>, target: Target, is_stopped: &dyn Fn() -> bool) -> Result<Vec<u8>, PictureError> {
    let begin = |Layout { width, height, channels }: Layout| {
        Scaler::new(width, channels, Plan::of_target(width, height, target))
    };
    let scaler = picture.rows(is_stopped, begin, |scaler, row| {
        if !scaler.is_done() {
            scaler.push(row);
        }
        Ok(())
    })?;
    Ok(encode_jpeg(&scaler.finish(), JPEG_QUALITY)?)
}

/// The part of an image that a thumbnail shows, and the size of the thumbnail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plan {
    first_column: u32,
    columns: u32,
    rows: u32,
    small_width: u32,
    small_height: u32,
}

impl Plan {
    fn of_part(width: u32, height: u32, part: Part) -> Self {
        let as_wide = scale(width, THUMBNAIL_HEIGHT, THUMBNAIL_WIDTH);
        let rows = match part {
            Part::Top => height.min(as_wide),
            Part::Whole => height,
        };
        let (small_width, small_height) = match (rows > as_wide, width > THUMBNAIL_WIDTH, rows > THUMBNAIL_HEIGHT) {
            (true, _, true) => (scale(width, THUMBNAIL_HEIGHT, rows), THUMBNAIL_HEIGHT),
            (false, true, _) => (THUMBNAIL_WIDTH, scale(rows, THUMBNAIL_WIDTH, width)),
            (_, _, _) => (width, rows),
        };
        Self { first_column: 0, columns: width, rows, small_width, small_height }
    }

    fn of_target(width: u32, height: u32, target: Target) -> Self {
        let is_wider = u64::from(width) * u64::from(target.height) > u64::from(height) * u64::from(target.width);
        let (columns, rows) = match (target.is_cut, is_wider) {
            (false, _) => (width, height),
            (true, true) => (scale(height, target.width, target.height).min(width), height),
            (true, false) => (width, scale(width, target.height, target.width).min(height)),
        };
        let (small_width, small_height) = match (target.is_cut, is_wider) {
            (false, true) if columns > target.width => (target.width, scale(rows, target.width, columns)),
            (false, false) if rows > target.height => (scale(columns, target.height, rows), target.height),
            (true, _) => (columns.min(target.width), rows.min(target.height)),
            (false, _) => (columns, rows),
        };
        Self { first_column: (width - columns) / 2, columns, rows, small_width, small_height }
    }
}

/// Adds up rows of pixels to the mean colours of the thumbnail's pixels.
struct Scaler {
    channels: usize,
    /// The rows that the thumbnail shows, and how many of them were added.
    rows: u32,
    row: u32,
    /// The thumbnail's column of each column. None for those that it does not show.
    columns: Vec<Option<u32>>,
    /// The sums of the current row of the thumbnail, and the number of pixels in each.
    sums: Vec<[u32; 4]>,
    small: RgbImage,
}

impl Scaler {
    fn new(width: u32, channels: usize, plan: Plan) -> Self {
        let Plan { first_column, columns, rows, small_width, small_height } = plan;
        let place = |column: u32| {
            let column = column.checked_sub(first_column).filter(|column| *column < columns)?;
            Some(position(column, small_width, columns))
        };
        let columns = (0..width).map(place).collect();
        let sums = vec![[0; 4]; usize::try_from(small_width).unwrap_or(0)];
        Self { channels, rows, row: 0, columns, sums, small: RgbImage::new(small_width, small_height) }
    }

    fn is_done(&self) -> bool {
        self.row == self.rows
    }

    /// Adds the next row. What is transparent is drawn on white.
    fn push(&mut self, row: &[u8]) {
        for (pixel, column) in row.chunks_exact(self.channels.max(1)).zip(&self.columns) {
            let color = match *pixel {
                [red, green, blue] => [red, green, blue],
                [red, green, blue, alpha] => on_white([red, green, blue, alpha]),
                [gray] => [gray; 3],
                [gray, alpha] => on_white([gray, gray, gray, alpha]),
                _ => continue,
            };
            let sum = column.and_then(|column| self.sums.get_mut(usize::try_from(column).ok()?));
            let Some([red, green, blue, pixels]) = sum else { continue };
            let [more_red, more_green, more_blue] = color.map(u32::from);
            (*red, *green, *blue, *pixels) = (*red + more_red, *green + more_green, *blue + more_blue, *pixels + 1);
        }
        let current = position(self.row, self.small.height(), self.rows);
        self.row += 1;
        if self.is_done() || position(self.row, self.small.height(), self.rows) != current {
            self.draw(current);
        }
    }

    /// Draws the current row of the thumbnail.
    fn draw(&mut self, y: u32) {
        for (x, sum) in (0..self.small.width()).zip(&mut self.sums) {
            let [red, green, blue, pixels] = std::mem::take(sum);
            let mean = |sum: u32| u8::try_from(sum / pixels.max(1)).unwrap_or(u8::MAX);
            self.small.put_pixel(x, y, image::Rgb([mean(red), mean(green), mean(blue)]));
        }
    }

    fn finish(self) -> RgbImage {
        self.small
    }
}

/// The pixel of a thumbnail's side that shows pixel `at` of a side of `from` pixels.
fn position(at: u32, to: u32, from: u32) -> u32 {
    u32::try_from(u64::from(at) * u64::from(to) / u64::from(from.max(1))).unwrap_or(u32::MAX)
}

/// `length * to / from`, at least 1.
fn scale(length: u32, to: u32, from: u32) -> u32 {
    position(length, to, from).max(1)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use image::{ImageFormat, Rgb};

    use super::*;
    use crate::cut::Format;
    use crate::picture::Source;
    use crate::rows::decoding_bytes;

    fn shrink(file: &[u8], format: Format, part: Part) -> Result<Vec<u8>, PictureError> {
        super::shrink(Picture { source: Source::Memory(file), format }, part)
    }

    /// An image that is red above this line and blue from it on.
    fn two_colors(width: u32, height: u32, blue_from: u32) -> RgbImage {
        RgbImage::from_fn(width, height, |_, y| if y < blue_from { Rgb([200, 20, 20]) } else { Rgb([20, 20, 200]) })
    }

    fn thumbnail_of(image: &RgbImage, format: Format, part: Part) -> RgbImage {
        let mut file = Cursor::new(Vec::new());
        image.write_to(&mut file, format.of_image()).unwrap();
        let small = shrink(&file.into_inner(), format, part).unwrap();
        image::load_from_memory_with_format(&small, ImageFormat::Jpeg).unwrap().into_rgb8()
    }

    #[test]
    fn thumbnail_shows_the_top_of_the_image() {
        for (width, height, expected) in [
            (1280, 720, (480, 270)),
            (1920, 1080, (480, 270)),
            (1280, 3240, (480, 270)),
            (320, 240, (320, 180)),
            (1000, 80, (480, 38)),
            (1, 1, (1, 1)),
            (1920, 1, (480, 1)),
        ] {
            let small = thumbnail_of(&two_colors(width, height, height), Format::Png, Part::Top);
            assert_eq!(small.dimensions(), expected, "{width}x{height}");
        }
        for format in [Format::Png, Format::Jpeg, Format::Webp] {
            let small = thumbnail_of(&two_colors(640, 480, 0), format, Part::Top);
            assert_eq!(small.dimensions(), (480, 270), "{format:?}");
        }
        let small = thumbnail_of(&two_colors(1280, 3240, 360), Format::Png, Part::Top);
        assert!(small.get_pixel(240, 100)[0] > 150 && small.get_pixel(240, 170)[2] > 150);
    }

    #[test]
    fn thumbnail_of_an_element_shows_all_of_it() {
        for (width, height, expected) in [
            (1280, 720, (480, 270)),
            (300, 900, (90, 270)),
            (1000, 80, (480, 38)),
            (320, 240, (320, 240)),
            (400, 300, (360, 270)),
            (20, 16_000, (1, 270)),
        ] {
            let small = thumbnail_of(&two_colors(width, height, height / 2), Format::Png, Part::Whole);
            assert_eq!(small.dimensions(), expected, "{width}x{height}");
            let (x, last) = (small.width() / 2, small.height() - 1);
            assert!(small.get_pixel(x, 0)[0] > 150 && small.get_pixel(x, last)[2] > 150, "{width}x{height}");
        }
    }

    #[test]
    fn thumbnail_has_the_colors_of_gray_and_transparent_images() {
        for image in [
            image::DynamicImage::from(image::GrayImage::from_pixel(600, 500, image::Luma([90]))),
            image::RgbaImage::from_pixel(600, 500, image::Rgba([90, 90, 90, 255])).into(),
            image::ImageBuffer::from_pixel(600, 500, Rgb([90_u16 << 8; 3])).into(),
        ] {
            let mut file = Cursor::new(Vec::new());
            image.write_to(&mut file, ImageFormat::Png).unwrap();
            let small = shrink(&file.into_inner(), Format::Png, Part::Top).unwrap();
            let small = image::load_from_memory_with_format(&small, ImageFormat::Jpeg).unwrap().into_rgb8();
            assert_eq!(small.dimensions(), (480, 269), "{:?}", image.color());
            assert!(small.pixels().all(|pixel| pixel.0.iter().all(|channel| channel.abs_diff(90) < 3)));
        }
    }

    #[test]
    fn copy_shows_all_of_the_image_or_is_cut_to_its_shape() {
        // The image, the target, and the sizes of a whole copy and of one that is cut.
        for ((width, height), (to_width, to_height), whole, cut) in [
            ((1280, 720), (400, 300), (400, 225), (400, 300)),
            ((1280, 3000), (400, 300), (128, 300), (400, 300)),
            ((3000, 100), (400, 300), (400, 13), (133, 100)),
            ((200, 100), (400, 300), (200, 100), (133, 100)),
            ((200, 250), (400, 300), (200, 250), (200, 150)),
            ((1, 1), (1024, 16), (1, 1), (1, 1)),
            ((1920, 16_384), (16, 16), (1, 16), (16, 16)),
        ] {
            for (is_cut, expected) in [(false, whole), (true, cut)] {
                let plan = Plan::of_target(width, height, Target { width: to_width, height: to_height, is_cut });
                assert_eq!((plan.small_width, plan.small_height), expected, "{width}x{height} {is_cut}");
                assert!(plan.first_column + plan.columns <= width && plan.rows <= height, "{plan:?}");
                assert!(plan.small_width <= plan.columns && plan.small_height <= plan.rows, "{plan:?}");
            }
        }
        // Red, but for the edges and the lower half.
        let image = RgbImage::from_fn(600, 400, |x, y| match (x, y) {
            (150..450, ..200) => Rgb([200, 20, 20]),
            _ => Rgb([20, 20, 200]),
        });
        for format in [Format::Png, Format::Jpeg, Format::Webp] {
            let mut file = Cursor::new(Vec::new());
            image.write_to(&mut file, format.of_image()).unwrap();
            let file = file.into_inner();
            let picture = Picture { source: Source::Memory(&file), format };
            let copy = |is_cut| {
                let target = Target { width: 30, height: 20, is_cut };
                let target = if is_cut { Target { width: 30, height: 40, ..target } } else { target };
                let copy = shrink_to(picture, target, &|| false).unwrap();
                image::load_from_memory_with_format(&copy, ImageFormat::Jpeg).unwrap().into_rgb8()
            };
            let (whole, cut) = (copy(false), copy(true));
            assert_eq!((whole.dimensions(), cut.dimensions()), ((30, 20), (30, 40)));
            assert!(
                whole.get_pixel(1, 1)[2] > 150 && whole.get_pixel(15, 4)[0] > 150 && whole.get_pixel(15, 16)[2] > 150
            );
            assert!(cut.get_pixel(1, 1)[0] > 150 && cut.get_pixel(28, 10)[0] > 150 && cut.get_pixel(15, 35)[2] > 150);
            assert!(matches!(
                shrink_to(picture, Target { width: 30, height: 20, is_cut: false }, &|| true),
                Err(PictureError::Stopped)
            ));
        }
    }

    #[test]
    fn transparent_images_are_drawn_on_white() {
        let image = image::RgbaImage::from_pixel(60, 50, image::Rgba([0, 0, 0, 0]));
        let mut file = Cursor::new(Vec::new());
        image.write_to(&mut file, ImageFormat::Png).unwrap();
        let small = shrink(&file.into_inner(), Format::Png, Part::Top).unwrap();
        let small = image::load_from_memory_with_format(&small, ImageFormat::Jpeg).unwrap().into_rgb8();
        assert!(small.pixels().all(|pixel| pixel.0.iter().all(|channel| *channel > 250)));
    }

    #[test]
    fn rows_below_the_thumbnail_are_not_decoded() {
        let mut file = Cursor::new(Vec::new());
        let noise = |x: u32, y: u32| Rgb([x, y, x ^ y].map(|seed| (seed.wrapping_mul(2_654_435_761) >> 24) as u8));
        RgbImage::from_fn(480, 4000, noise).write_to(&mut file, ImageFormat::Png).unwrap();
        let mut file = file.into_inner();
        file.truncate(file.len() / 2);
        assert!(shrink(&file, Format::Png, Part::Top).is_ok());
        file.truncate(file.len() / 10);
        assert!(shrink(&file, Format::Png, Part::Top).is_err(), "the top is missing");
    }

    #[test]
    fn invalid_files_have_no_thumbnail() {
        for format in [Format::Png, Format::Jpeg, Format::Webp] {
            assert!(shrink(b"<svg onload=alert(1)>", format, Part::Top).is_err());
        }
    }

    #[test]
    fn largest_images_fit_the_default_memory() {
        for format in [Format::Png, Format::Jpeg, Format::Webp] {
            assert!(decoding_bytes(1920, 16_384, format, 32 << 20) + THUMBNAIL_BYTES < 256 << 20, "{format:?}");
        }
    }
}
