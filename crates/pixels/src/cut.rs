//! Makes the slices of an encoded image.
//!
//! A PNG, the format in which images are largest, is read twice, row by row: once for the uniform rows, and once for
//! the slices. It is never in memory as a whole. A JPEG is decoded once and its slices are encoded in the same quality.
//! The slices of a WebP are lossless, since there is no other encoder.

use std::io::{Cursor, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use image::codecs::jpeg::JpegEncoder;
use image::codecs::webp::WebPEncoder;
use image::error::{DecodingError, ImageFormatHint};
use image::{DynamicImage, ImageEncoder as _, ImageError, ImageFormat, ImageReader};

use crate::limited::Limited;
use crate::plan::{Rows, is_uniform, plan};
use crate::trusted::{Timed, check_jpeg, check_size};

/// Memory for rows, and for the compression of a PNG.
const ROWS_BYTES: u64 = 4 << 20;

/// Bytes of a chunk of a PNG.
const CHUNK_BYTES: usize = 64 << 10;

/// The format of an image, and of its slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Format {
    Png,
    Jpeg,
    Webp,
}

impl Format {
    pub(crate) const fn of_image(self) -> ImageFormat {
        match self {
            Self::Png => ImageFormat::Png,
            Self::Jpeg => ImageFormat::Jpeg,
            Self::Webp => ImageFormat::WebP,
        }
    }
}

/// How an image is cut.
#[derive(Clone, Copy, Debug)]
pub struct Cut<'a> {
    /// The format.
    pub format: Format,
    /// The quality of the slices of a JPEG, from 1 to 100.
    pub quality: u8,
    /// The largest height of a slice in pixels.
    pub slice_height: u32,
    /// The largest size of all slices together, in bytes.
    pub max_bytes: usize,
    /// Set when the slices are no longer needed.
    pub is_cancelled: &'a AtomicBool,
}

/// A slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Its rows in the image.
    pub rows: Rows,
    /// The encoded file.
    pub file: Vec<u8>,
}

/// Why an image was not cut.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is not an image of the format.
    #[error("the image cannot be decoded")]
    Undecodable(#[source] ImageError),
    /// A slice could not be encoded.
    #[error("a slice cannot be encoded")]
    NotEncoded(#[source] ImageError),
    /// The image needs more than [`MAX_SLICES`](crate::MAX_SLICES) slices.
    #[error("the image is too high for its slices")]
    TooHigh,
    /// The slices have more bytes than they may.
    #[error("the slices have too many bytes")]
    TooLarge,
    /// The slices are no longer needed.
    #[error("cutting was cancelled")]
    Cancelled,
}

/// The memory that cutting an image takes, beside the file and its slices, in bytes.
pub fn memory_bytes(width: u32, height: u32, slice_height: u32, format: Format, file_bytes: u64) -> u64 {
    let pixels = |rows: u32| u64::from(width) * u64::from(rows);
    let decoded = match format {
        Format::Png => 0,
        Format::Jpeg => file_bytes.saturating_add(pixels(height) * 3),
        // With transparency, and the planes that the colours are decoded from. The encoder copies a slice.
        Format::Webp => file_bytes.saturating_add(pixels(height) * 6 + pixels(height.min(slice_height)) * 4),
    };
    decoded.saturating_add(ROWS_BYTES)
}

/// Cuts an image into slices, from top to bottom. Their pixels are those of the image; in JPEG, as close as its quality
/// allows. Takes seconds of CPU time for large images.
///
/// # Errors
/// See [`Error`].
pub fn cut(image: &[u8], how: &Cut<'_>) -> Result<Vec<Slice>, Error> {
    match how.format {
        Format::Png => cut_png(image, how),
        Format::Jpeg | Format::Webp => cut_decoded(image, how),
    }
}

/// The space that is left for slices, and the slices so far.
struct Slices<'a> {
    made: Vec<Slice>,
    left: usize,
    how: &'a Cut<'a>,
}

impl<'a> Slices<'a> {
    fn new(how: &'a Cut<'a>) -> Self {
        Self { made: Vec::new(), left: how.max_bytes, how }
    }

    /// Adds a slice, whose file `encode` writes.
    fn add(&mut self, rows: Rows, encode: impl FnOnce(&mut Limited) -> Result<(), Error>) -> Result<(), Error> {
        let mut limited = Limited { bytes: Vec::new(), most: self.left, is_full: false };
        match encode(&mut limited) {
            Err(Error::NotEncoded(_)) if limited.is_full => return Err(Error::TooLarge),
            encoded => encoded?,
        }
        let mut file = limited.bytes;
        file.shrink_to_fit();
        self.left = self.left.saturating_sub(file.len());
        self.made.push(Slice { rows, file });
        Ok(())
    }

    fn check_cancelled(&self) -> Result<(), Error> {
        check_cancelled(self.how)
    }
}

fn check_cancelled(how: &Cut<'_>) -> Result<(), Error> {
    match how.is_cancelled.load(Ordering::Relaxed) {
        true => Err(Error::Cancelled),
        false => Ok(()),
    }
}

fn undecodable(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    let format = ImageFormatHint::Exact(ImageFormat::Png);
    Error::Undecodable(ImageError::Decoding(DecodingError::new(format, error)))
}

fn not_encoded(error: png::EncodingError) -> Error {
    Error::NotEncoded(ImageError::IoError(error.into()))
}

fn rows_of_png(image: &[u8]) -> Result<png::Reader<Timed<Cursor<&[u8]>>>, Error> {
    let mut decoder = png::Decoder::new(Timed::new(Cursor::new(image)));
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    decoder.set_ignore_text_chunk(true);
    let (width, height) = decoder.read_header_info().map_err(undecodable)?.size();
    check_size(width, height).map_err(Error::Undecodable)?;
    let reader = decoder.read_info().map_err(undecodable)?;
    match reader.info().interlaced {
        true => Err(undecodable("captures are not interlaced")),
        false => Ok(reader),
    }
}

fn cut_png(image: &[u8], how: &Cut<'_>) -> Result<Vec<Slice>, Error> {
    let mut reader = rows_of_png(image)?;
    let (width, height) = (reader.info().width, reader.info().height);
    let (color, depth) = reader.output_color_type();
    let mut uniform = Vec::new();
    while let Some(row) = reader.next_row().map_err(undecodable)? {
        check_cancelled(how)?;
        uniform.push(is_uniform(row.data(), color.samples()));
    }
    let mut reader = rows_of_png(image)?;
    let mut slices = Slices::new(how);
    for rows in planned(height, how, &uniform)? {
        slices.add(rows, |file| {
            let mut encoder = png::Encoder::new(file, width, rows.height);
            encoder.set_color(color);
            encoder.set_depth(depth);
            // Rows are repeated often. As fast as the fast compression of the browser, and smaller.
            encoder.set_deflate_compression(png::DeflateCompression::Level(1));
            encoder.set_filter(png::Filter::Up);
            let mut writer = encoder.write_header().map_err(not_encoded)?;
            let mut stream = writer.stream_writer_with_size(CHUNK_BYTES).map_err(not_encoded)?;
            for _ in 0..rows.height {
                check_cancelled(how)?;
                let row = reader.next_row().map_err(undecodable)?;
                let row = row.ok_or_else(|| undecodable("a row is missing"))?;
                stream.write_all(row.data()).map_err(|error| not_encoded(error.into()))?;
            }
            stream.finish().map_err(not_encoded)?;
            writer.finish().map_err(not_encoded)
        })?;
    }
    Ok(slices.made)
}

/// The rows of the slices, where these rows of the image are uniform.
fn planned(height: u32, how: &Cut<'_>, uniform: &[bool]) -> Result<Vec<Rows>, Error> {
    let is_uniform = |row| usize::try_from(row).ok().and_then(|row| uniform.get(row)).is_some_and(|of| *of);
    plan(height, how.slice_height, is_uniform).ok_or(Error::TooHigh)
}

fn cut_decoded(image: &[u8], how: &Cut<'_>) -> Result<Vec<Slice>, Error> {
    let reader = || ImageReader::with_format(Timed::new(Cursor::new(image)), how.format.of_image());
    let (width, height) = reader().into_dimensions().map_err(Error::Undecodable)?;
    check_size(width, height).map_err(Error::Undecodable)?;
    if how.format == Format::Jpeg {
        check_jpeg(&mut Cursor::new(image)).map_err(Error::Undecodable)?;
    }
    let decoded = reader().decode().map_err(Error::Undecodable)?;
    let decoded: DynamicImage = match decoded.color().has_alpha() {
        true => decoded.into_rgba8().into(),
        false => decoded.into_rgb8().into(),
    };
    let (width, height, color) = (decoded.width(), decoded.height(), decoded.color());
    let channels = usize::from(color.channel_count());
    let row_bytes = usize::try_from(width).unwrap_or(usize::MAX).saturating_mul(channels).max(1);
    let uniform: Vec<bool> = decoded.as_bytes().chunks_exact(row_bytes).map(|row| is_uniform(row, channels)).collect();
    let mut rest = decoded.as_bytes();
    let mut slices = Slices::new(how);
    for rows in planned(height, how, &uniform)? {
        slices.check_cancelled()?;
        let bytes = usize::try_from(rows.height).unwrap_or(usize::MAX).saturating_mul(row_bytes);
        let (pixels, below) = rest.split_at_checked(bytes).unwrap_or((rest, &[]));
        rest = below;
        slices.add(rows, |file| {
            let color = color.into();
            let encoded = match how.format {
                Format::Webp => WebPEncoder::new_lossless(file).write_image(pixels, width, rows.height, color),
                Format::Png | Format::Jpeg => {
                    JpegEncoder::new_with_quality(file, how.quality).write_image(pixels, width, rows.height, color)
                }
            };
            encoded.map_err(Error::NotEncoded)
        })?;
    }
    Ok(slices.made)
}

#[cfg(test)]
mod tests {
    use image::{GenericImage as _, Rgb, RgbImage, Rgba, RgbaImage};

    use super::*;
    use crate::plan::MAX_SLICES;

    static NEVER: AtomicBool = AtomicBool::new(false);

    fn how(format: Format, slice_height: u32) -> Cut<'static> {
        Cut { format, quality: 90, slice_height, max_bytes: 1 << 20, is_cancelled: &NEVER }
    }

    /// Rows of two colours, apart from every 30th one.
    fn striped(width: u32, height: u32) -> RgbImage {
        RgbImage::from_fn(width, height, |x, y| match y % 30 == 29 || x % 7 > 3 {
            true => Rgb([250, 240, 230]),
            false => Rgb([10, 20, u8::try_from(y % 251).unwrap()]),
        })
    }

    fn file(image: &DynamicImage, format: Format) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        image.write_to(&mut bytes, format.of_image()).unwrap();
        bytes.into_inner()
    }

    /// The slices put together.
    fn joined(slices: &[Slice], format: Format) -> DynamicImage {
        let images =
            slices.iter().map(|slice| image::load_from_memory_with_format(&slice.file, format.of_image()).unwrap());
        let images: Vec<DynamicImage> = images.collect();
        for (image, slice) in images.iter().zip(slices) {
            assert_eq!(image.height(), slice.rows.height);
        }
        let height = images.iter().map(DynamicImage::height).sum();
        let mut whole = DynamicImage::new(images[0].width(), height, images[0].color());
        for (image, slice) in images.iter().zip(slices) {
            whole.copy_from(image, 0, slice.rows.y).unwrap();
        }
        whole
    }

    #[test]
    fn slices_have_the_pixels_of_the_image() {
        let opaque: DynamicImage = striped(37, 700).into();
        let clear = RgbaImage::from_fn(37, 700, |x, y| Rgba([10, 20, 30, u8::try_from((x + y) % 256).unwrap()]));
        let gray = image::GrayImage::from_fn(37, 700, |x, y| image::Luma([u8::try_from((x * y) % 256).unwrap()]));
        for (image, formats) in [
            (opaque, &[Format::Png, Format::Webp, Format::Jpeg][..]),
            (clear.into(), &[Format::Png, Format::Webp]),
            (gray.into(), &[Format::Png]),
        ] {
            for format in formats {
                let whole = file(&image, *format);
                let slices = cut(&whole, &how(*format, 256)).unwrap();
                assert_eq!(slices.len(), 3, "{format:?}");
                assert_eq!(cut(&whole, &how(*format, 256)).unwrap(), slices, "it is the same every time");
                let (joined, decoded) = (joined(&slices, *format), image::load_from_memory(&whole).unwrap());
                assert_eq!(joined.color(), decoded.color());
                if *format == Format::Jpeg {
                    let differences =
                        joined.as_bytes().iter().zip(decoded.as_bytes()).map(|(a, b)| u64::from(a.abs_diff(*b)));
                    let mean = differences.sum::<u64>() / decoded.as_bytes().len() as u64;
                    assert!(mean < 6, "{mean}");
                } else {
                    assert!(joined == decoded, "{format:?}");
                }
            }
        }
    }

    #[test]
    fn cuts_are_between_the_lines() {
        let slices = |format| cut(&file(&striped(40, 1000).into(), format), &how(format, 300)).unwrap();
        for format in [Format::Png, Format::Webp] {
            let heights: Vec<u32> = slices(format).iter().map(|slice| slice.rows.height).collect();
            assert_eq!(heights, [300, 300, 300, 100], "{format:?}");
        }
        let lower = cut(&file(&striped(40, 1000).into(), Format::Png), &how(Format::Png, 319)).unwrap();
        assert_eq!(lower.iter().map(|slice| slice.rows.y).collect::<Vec<_>>(), [0, 300, 600, 900]);
    }

    #[test]
    fn slices_that_are_too_large_or_too_many_are_refused() {
        let noise = RgbImage::from_fn(64, 600, |x, y| {
            let seed = (x + 64 * y).wrapping_mul(2_654_435_761);
            Rgb([8, 16, 24].map(|shift| (seed >> shift) as u8))
        });
        for format in [Format::Png, Format::Jpeg, Format::Webp] {
            let whole = file(&noise.clone().into(), format);
            let slices = cut(&whole, &how(format, 256)).unwrap();
            let bytes: usize = slices.iter().map(|slice| slice.file.len()).sum();
            assert_eq!(cut(&whole, &Cut { max_bytes: bytes, ..how(format, 256) }).unwrap(), slices);
            let refused = cut(&whole, &Cut { max_bytes: bytes - 1, ..how(format, 256) });
            assert!(matches!(refused, Err(Error::TooLarge)), "{format:?}");
            let high = cut(&whole, &how(format, 600 / MAX_SLICES));
            assert!(matches!(high, Err(Error::TooHigh)), "{format:?}");
            let cancelled = AtomicBool::new(true);
            let cancelled = cut(&whole, &Cut { is_cancelled: &cancelled, ..how(format, 256) });
            assert!(matches!(cancelled, Err(Error::Cancelled)), "{format:?}");
            for broken in [&whole[..8], b"<svg>", b""] {
                let error = cut(broken, &how(format, 256)).map(|slices| slices.len()).unwrap_err();
                assert!(matches!(error, Error::Undecodable(_)), "{format:?}: {error:?}");
            }
        }
    }

    #[test]
    fn only_lossy_formats_are_decoded_as_a_whole() {
        assert_eq!(memory_bytes(1920, 16_384, 2000, Format::Png, 32 << 20), ROWS_BYTES);
        assert!(memory_bytes(1920, 16_384, 2000, Format::Jpeg, 8 << 20) > 1920 * 16_384 * 3);
    }
}
