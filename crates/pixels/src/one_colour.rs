//! Whether an image shows nothing.

use std::io::Cursor;

use image::ImageReader;

/// Lossy formats change a uniform colour by this much.
const TOLERANCE: u8 = 3;

/// The eight bytes that start a PNG.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// A file with fewer pixels than this for each byte after its tables is not of one colour, and is not decoded. A JPEG takes at
/// least 18 bits for each 64 pixels.
const LEAST_PIXELS_PER_BYTE: u64 = 25;
const TABLE_BYTES: u64 = 1024;

/// Whether all pixels of an encoded image have one colour. `None` if it cannot be decoded.
///
/// A PNG is decoded until the first row that differs, which is at the top of most images.
pub fn has_one_colour(file: &[u8]) -> Option<bool> {
    if file.starts_with(PNG) {
        return png_has_one_colour(file);
    }
    let reader = || ImageReader::new(Cursor::new(file)).with_guessed_format().ok();
    let (width, height) = reader()?.into_dimensions().ok()?;
    let bytes = u64::try_from(file.len()).unwrap_or(u64::MAX).saturating_sub(TABLE_BYTES);
    if bytes.saturating_mul(LEAST_PIXELS_PER_BYTE) > u64::from(width) * u64::from(height) {
        return Some(false);
    }
    let image = reader()?.decode().ok()?.to_rgba8();
    let first = *image.get_pixel_checked(0, 0)?;
    let is_same = |(one, other): (&u8, &u8)| one.abs_diff(*other) <= TOLERANCE;
    Some(image.pixels().all(|pixel| pixel.0.iter().zip(&first.0).all(is_same)))
}

fn png_has_one_colour(file: &[u8]) -> Option<bool> {
    let mut decoder = png::Decoder::new(Cursor::new(file));
    // Pixels of a palette may share a byte.
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().ok()?;
    let pixel_bytes = reader.output_color_type().0.samples();
    let mut first: Option<Vec<u8>> = None;
    while let Some(row) = reader.next_row().ok()? {
        let row = row.data();
        match &first {
            Some(first) if first != row => return Some(false),
            Some(_) => {}
            None => {
                let pixel = row.get(..pixel_bytes)?;
                if !row.chunks_exact(pixel_bytes).all(|other| other == pixel) {
                    return Some(false);
                }
                first = Some(row.to_vec());
            }
        }
    }
    first.map(|_| true)
}

#[cfg(test)]
mod tests {
    use image::{DynamicImage, ImageFormat, Rgb, RgbImage};

    use super::*;

    fn file(image: &RgbImage, format: ImageFormat) -> Vec<u8> {
        let mut file = Cursor::new(Vec::new());
        DynamicImage::from(image.clone()).write_to(&mut file, format).unwrap();
        file.into_inner()
    }

    #[test]
    fn one_differing_pixel_is_found_in_all_formats() {
        let uniform = RgbImage::from_pixel(640, 480, Rgb([20, 40, 60]));
        let mut last = uniform.clone();
        last.put_pixel(639, 479, Rgb([255, 255, 255]));
        let mut first = uniform.clone();
        first.put_pixel(1, 0, Rgb([255, 255, 255]));
        for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::WebP] {
            let one_colour = |image| has_one_colour(&file(image, format));
            assert_eq!(
                (one_colour(&uniform), one_colour(&last), one_colour(&first)),
                (Some(true), Some(false), Some(false))
            );
        }
        assert_eq!(has_one_colour(b"nothing"), None);
        assert_eq!(has_one_colour(PNG), None);
    }

    #[test]
    fn pixels_that_share_a_byte_are_looked_at() {
        let mut image = RgbImage::from_pixel(13, 5, Rgb([20, 40, 60]));
        let one_colour = |image: &RgbImage| {
            let small = crate::recompress(&file(image, ImageFormat::Png), usize::MAX, &|| false).unwrap();
            has_one_colour(&small)
        };
        assert_eq!(one_colour(&image), Some(true));
        image.put_pixel(12, 4, Rgb([255, 255, 255]));
        assert_eq!(one_colour(&image), Some(false));
    }

    #[test]
    fn images_with_content_are_not_of_one_colour() {
        let noise =
            RgbImage::from_fn(200, 100, |x, y| Rgb([(x * 7 % 251) as u8, (y * 13 % 241) as u8, (x * y % 239) as u8]));
        for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::WebP] {
            assert_eq!(has_one_colour(&file(&noise, format)), Some(false), "{format:?}");
        }
    }
}
