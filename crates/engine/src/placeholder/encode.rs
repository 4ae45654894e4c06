//! Encoding of a painted placeholder.

use grabd_domain::capture::Format;
use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::codecs::webp::WebPEncoder;
use image::{ExtendedColorType, ImageEncoder, ImageError};
use resvg::tiny_skia::Pixmap;

/// Lower qualities show ringing artifacts around text on flat colours.
pub(super) const JPEG_QUALITY: u8 = 90;

/// Encodes the pixels. They must be opaque, as in all placeholders: the alpha channel is dropped, not blended.
pub(super) fn encode(painted: Pixmap, format: Format) -> Result<Vec<u8>, ImageError> {
    let (width, height) = (painted.width(), painted.height());
    let pixels = without_alpha(painted);
    let mut file = Vec::new();
    let rgb = ExtendedColorType::Rgb8;
    match format {
        Format::Png => {
            // Most lines repeat the one above, which `Up` turns into zeros. Measured: a fifth of the bytes of
            // `Fast` in the same time; higher levels take twice as long to halve an already small file.
            PngEncoder::new_with_quality(&mut file, CompressionType::Level(1), FilterType::Up)
                .write_image(&pixels, width, height, rgb)?;
        }
        Format::Jpeg => {
            JpegEncoder::new_with_quality(&mut file, JPEG_QUALITY).write_image(&pixels, width, height, rgb)?;
        }
        Format::Webp => WebPEncoder::new_lossless(&mut file).write_image(&pixels, width, height, rgb)?,
    }
    Ok(file)
}

fn without_alpha(painted: Pixmap) -> Vec<u8> {
    let mut pixels = painted.take();
    let mut end = 0;
    for at in (0..pixels.len()).step_by(4) {
        pixels.copy_within(at..at + 3, end);
        end += 3;
    }
    pixels.truncate(end);
    pixels
}
