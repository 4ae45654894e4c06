//! Encoding of a painted placeholder.

use grabd_domain::capture::Format;
use grabd_pixels::{encode_jpeg, without_alpha};
use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::codecs::webp::WebPEncoder;
use image::error::{ParameterError, ParameterErrorKind};
use image::{ImageError, RgbImage};
use resvg::tiny_skia::Pixmap;

/// Lower qualities show ringing artifacts around text on flat colours.
pub(super) const JPEG_QUALITY: u8 = 90;

/// Encodes the pixels. They must be opaque, as in all placeholders: the alpha channel is dropped, not blended.
pub(super) fn encode(painted: Pixmap, format: Format) -> Result<Vec<u8>, ImageError> {
    let (width, height) = (painted.width(), painted.height());
    let image = RgbImage::from_raw(width, height, without_alpha(painted.take()))
        .ok_or_else(|| ImageError::Parameter(ParameterError::from_kind(ParameterErrorKind::DimensionMismatch)))?;
    let mut file = Vec::new();
    match format {
        Format::Png => {
            // Most lines repeat the one above, which `Up` turns into zeros. Measured: a fifth of the bytes of
            // `Fast` in the same time; higher levels take twice as long to halve an already small file.
            image.write_with_encoder(PngEncoder::new_with_quality(
                &mut file,
                CompressionType::Level(1),
                FilterType::Up,
            ))?;
        }
        Format::Jpeg => return encode_jpeg(&image, JPEG_QUALITY),
        Format::Webp => image.write_with_encoder(WebPEncoder::new_lossless(&mut file))?,
    }
    Ok(file)
}
