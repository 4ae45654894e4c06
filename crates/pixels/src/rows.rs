//! Reads the pixels of images row by row, so that a PNG, the format in which images are largest, is never in memory as a
//! whole. JPEG and WebP are decoded as a whole, within a limit. Sizes that no capture has are refused before.

use std::io::{BufRead, Seek};
use std::ops::ControlFlow;

use image::error::{DecodingError, ImageFormatHint};
use image::{ImageError, ImageFormat, ImageReader};

use crate::cut::Format;
use crate::trusted::{MAX_SIDE, Timed, check_jpeg, check_size};

/// Limit of the decoders of JPEG and WebP.
const MAX_DECODE_BYTES: u64 = 192 << 20;

/// The form of the rows of an image. Each channel of a pixel has 8 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// From 1 to 4: gray or RGB, each with or without alpha.
    pub(crate) channels: usize,
}

/// The memory that [`read_rows`] takes, besides some rows.
pub(crate) fn decoding_bytes(width: u32, height: u32, format: Format, file_bytes: u64) -> u64 {
    let pixels = u64::from(width) * u64::from(height);
    match format {
        Format::Png => 0,
        // The decoder has the file and the pixels in memory.
        Format::Jpeg => file_bytes.saturating_add(pixels * 3),
        // With transparency, and the planes that the colours are decoded from.
        Format::Webp => file_bytes.saturating_add(pixels * 6),
    }
}

/// Width and height of an image in pixels.
///
/// # Errors
/// When the file is no image of this format, or larger than any capture.
pub(crate) fn dimensions(file: impl BufRead + Seek, format: Format) -> Result<(u32, u32), ImageError> {
    let (width, height) = ImageReader::with_format(Timed::new(file), format.of_image()).into_dimensions()?;
    check_size(width, height).map(|()| (width, height))
}

/// Passes the rows of an image to `each`, from the top, until it breaks. `begin` makes what is passed along.
///
/// # Errors
/// When the file is no image of this format, larger than any capture, or takes too long to read.
pub(crate) fn read_rows<T>(
    file: impl BufRead + Seek,
    format: Format,
    begin: impl FnOnce(Layout) -> T,
    each: impl FnMut(&mut T, &[u8]) -> ControlFlow<()>,
) -> Result<T, ImageError> {
    let mut file = Timed::new(file);
    match format {
        Format::Png => read_png(file, begin, each),
        Format::Jpeg => {
            check_jpeg(&mut file)?;
            file.rewind()?;
            read_decoded(file, format, begin, each)
        }
        Format::Webp => read_decoded(file, format, begin, each),
    }
}

fn read_png<T>(
    file: impl BufRead + Seek,
    begin: impl FnOnce(Layout) -> T,
    mut each: impl FnMut(&mut T, &[u8]) -> ControlFlow<()>,
) -> Result<T, ImageError> {
    let mut decoder = png::Decoder::new(file);
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    decoder.set_ignore_text_chunk(true);
    let (width, height) = decoder.read_header_info().map_err(png_error)?.size();
    check_size(width, height)?;
    let mut reader = decoder.read_info().map_err(png_error)?;
    if reader.info().interlaced {
        return Err(png_error("captures are not interlaced"));
    }
    let mut state = begin(Layout { width, height, channels: reader.output_color_type().0.samples() });
    while let Some(row) = reader.next_row().map_err(png_error)? {
        if each(&mut state, row.data()).is_break() {
            break;
        }
    }
    Ok(state)
}

fn read_decoded<T>(
    file: impl BufRead + Seek,
    format: Format,
    begin: impl FnOnce(Layout) -> T,
    mut each: impl FnMut(&mut T, &[u8]) -> ControlFlow<()>,
) -> Result<T, ImageError> {
    let mut reader = ImageReader::with_format(file, format.of_image());
    let mut limits = image::Limits::default();
    limits.max_alloc = Some(MAX_DECODE_BYTES);
    (limits.max_image_width, limits.max_image_height) = (Some(MAX_SIDE), Some(MAX_SIDE));
    reader.limits(limits);
    let mut image = reader.decode()?;
    if image.color().bytes_per_pixel() != image.color().channel_count() {
        image = image.into_rgb8().into();
    }
    let channels = usize::from(image.color().channel_count());
    let mut state = begin(Layout { width: image.width(), height: image.height(), channels });
    let length = channels * usize::try_from(image.width()).unwrap_or(usize::MAX);
    for row in image.as_bytes().chunks_exact(length.max(1)) {
        if each(&mut state, row).is_break() {
            break;
        }
    }
    Ok(state)
}

/// The pixels of a row as red, green, blue and alpha.
pub(crate) fn rgba(row: &[u8], channels: usize) -> impl Iterator<Item = [u8; 4]> {
    row.chunks_exact(channels.max(1)).map(|pixel| match *pixel {
        [red, green, blue] => [red, green, blue, u8::MAX],
        [red, green, blue, alpha] => [red, green, blue, alpha],
        [gray, alpha] => [gray, gray, gray, alpha],
        [gray] => [gray, gray, gray, u8::MAX],
        _ => [0; 4],
    })
}

fn png_error(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> ImageError {
    ImageError::Decoding(DecodingError::new(ImageFormatHint::Exact(ImageFormat::Png), error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_of_all_layouts_have_four_channels() {
        let pixels = |row: &[u8], channels| rgba(row, channels).collect::<Vec<_>>();
        assert_eq!(pixels(&[1, 2], 1), [[1, 1, 1, 255], [2, 2, 2, 255]]);
        assert_eq!(pixels(&[1, 9, 2, 8], 2), [[1, 1, 1, 9], [2, 2, 2, 8]]);
        assert_eq!(pixels(&[1, 2, 3, 4, 5, 6], 3), [[1, 2, 3, 255], [4, 5, 6, 255]]);
        assert_eq!(pixels(&[1, 2, 3, 4], 4), [[1, 2, 3, 4]]);
    }

    /// The head of a PNG that claims this size, with one row of zeros compressed.
    fn png_of(width: u32, height: u32) -> Vec<u8> {
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, width, height);
        encoder.set_color(png::ColorType::Grayscale);
        encoder.set_depth(png::BitDepth::One);
        let mut writer = encoder.write_header().unwrap();
        // No image data: only its size is looked at.
        writer.write_chunk(png::chunk::IDAT, &[]).unwrap();
        drop(writer);
        file
    }

    #[test]
    fn sizes_that_no_capture_has_are_refused_before_they_are_decoded() {
        for (width, height) in [(60_000_000, 1), (1, 60_000_000), (16_384, 16_384), (i32::MAX as u32, i32::MAX as u32)]
        {
            let file = png_of(width, height);
            let open = || std::io::Cursor::new(&file);
            assert!(matches!(dimensions(open(), Format::Png), Err(ImageError::Limits(_))), "{width} x {height}");
            let mut has_begun = false;
            let read = read_rows(open(), Format::Png, |_| has_begun = true, |(), _| ControlFlow::Continue(()));
            assert!(matches!(read, Err(ImageError::Limits(_))) && !has_begun, "{width} x {height}");
        }
        let fine = png_of(1920, 16_384);
        assert_eq!(dimensions(std::io::Cursor::new(&fine), Format::Png).unwrap(), (1920, 16_384));
    }

    #[test]
    fn progressive_jpeg_and_huge_webp_are_refused() {
        let mut jpeg = Vec::new();
        image::codecs::jpeg::JpegEncoder::new(&mut jpeg).encode_image(&image::RgbImage::new(8, 8)).unwrap();
        let rows = |file: &[u8], format| {
            let each = |rows: &mut u32, _: &[u8]| {
                *rows += 1;
                ControlFlow::Continue(())
            };
            read_rows(std::io::Cursor::new(file.to_vec()), format, |_| 0, each)
        };
        assert_eq!(rows(&jpeg, Format::Jpeg).unwrap(), 8);
        let frame = jpeg.windows(2).position(|two| two == [0xff, 0xc0]).unwrap();
        jpeg[frame + 1] = 0xc2;
        assert!(matches!(rows(&jpeg, Format::Jpeg), Err(ImageError::Decoding(_))));
        // An extended file whose canvas has 16,777,216 pixels in each direction.
        let mut webp = b"RIFF\x16\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0".to_vec();
        webp.extend([0xff; 6]);
        assert!(rows(&webp, Format::Webp).is_err());
        assert!(dimensions(std::io::Cursor::new(&webp), Format::Webp).is_err());
    }
}
