//! Images without transparency, and their encoding as JPEG.

use image::codecs::jpeg::JpegEncoder;
use image::{DynamicImage, ImageError, Rgb, RgbImage};

/// Encodes an image as a JPEG of this quality, from 1 to 100.
///
/// # Errors
/// If it has no pixels, or more than 65,535 in width or height.
pub fn encode_jpeg(image: &RgbImage, quality: u8) -> Result<Vec<u8>, ImageError> {
    let mut file = Vec::new();
    JpegEncoder::new_with_quality(&mut file, quality).encode_image(image)?;
    Ok(file)
}

/// Draws the image on white, because JPEG has no transparency.
pub fn image_on_white(image: &DynamicImage) -> RgbImage {
    if !image.color().has_alpha() {
        return image.to_rgb8();
    }
    let image = image.to_rgba8();
    RgbImage::from_fn(image.width(), image.height(), |x, y| Rgb(on_white(image.get_pixel(x, y).0)))
}

/// Draws a pixel, of red, green, blue and alpha, on white.
pub fn on_white([red, green, blue, alpha]: [u8; 4]) -> [u8; 3] {
    let alpha = u32::from(alpha);
    let blend = |channel| (u32::from(channel) * alpha + 255 * (255 - alpha)) / 255;
    [red, green, blue].map(|channel| u8::try_from(blend(channel)).unwrap_or(u8::MAX))
}

/// Drops the fourth of each four bytes, the alpha of a pixel. The pixels must be opaque: they are not blended.
pub fn without_alpha(mut pixels: Vec<u8>) -> Vec<u8> {
    let mut end = 0;
    for at in (0..pixels.len() / 4 * 4).step_by(4) {
        pixels.copy_within(at..at + 3, end);
        end += 3;
    }
    pixels.truncate(end);
    pixels
}

#[cfg(test)]
mod tests {
    use image::{Rgba, RgbaImage};

    use super::*;

    #[test]
    fn transparent_pixels_are_mixed_with_white() {
        let image = RgbaImage::from_fn(4, 1, |x, _| Rgba([0, 100, 255, [0, 51, 204, 255][x as usize]]));
        let drawn = image_on_white(&image.into());
        assert_eq!(
            drawn.pixels().map(|pixel| pixel.0).collect::<Vec<_>>(),
            [[255; 3], [204, 224, 255], [51, 131, 255], [0, 100, 255]]
        );
        let opaque = RgbImage::from_pixel(2, 1, Rgb([1, 2, 3]));
        assert_eq!(image_on_white(&opaque.clone().into()), opaque);
    }

    #[test]
    fn alpha_is_dropped() {
        assert_eq!(without_alpha(vec![1, 2, 3, 255, 4, 5, 6, 255]), [1, 2, 3, 4, 5, 6]);
        assert_eq!(without_alpha(Vec::new()), []);
    }

    #[test]
    fn jpeg_has_the_pixels_and_an_empty_image_is_refused() {
        let image = RgbImage::from_pixel(20, 10, Rgb([40, 80, 160]));
        let file = encode_jpeg(&image, 90).unwrap();
        let read = image::load_from_memory(&file).unwrap().to_rgb8();
        assert_eq!(read.dimensions(), (20, 10));
        assert!(read.pixels().all(|pixel| pixel.0.iter().zip([40, 80, 160]).all(|(a, b)| a.abs_diff(b) <= 4)));
        assert!(encode_jpeg(&RgbImage::new(0, 0), 90).is_err());
    }
}
