//! Makes a PNG smaller, with the same pixels.
//!
//! Browsers encode quickly, and large. The file is decoded row by row. The rows are kept as numbers of colours, until there are
//! more than 256 of them: then they are compressed as they come, and never are in memory as a whole. See
//! docs/decisions/0018-smaller-png-files.md.

mod chunks;
mod colours;
mod indexed;
mod limits;

use std::io::Cursor;
use std::ops::ControlFlow;

use png::{BitDepth, ColorType, Reader};

use self::colours::Colours;
use self::indexed::Indexed;
use self::limits::Limits;
use crate::trusted::check_size;

/// The most pixels of an image that is made smaller: more than 16,384 rows of 1,280 pixels, which take 70 ms.
const MAX_PIXELS: u64 = 24_000_000;

/// The largest file that is made smaller: about 300 ms, as gradients take 64 ms for each million bytes. The time depends on
/// the bytes of the file more than on its pixels.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// The memory that [`recompress`] takes for some rows and for the compression, however small the image is.
pub const RECOMPRESSION_BYTES: u64 = 1 << 20;

/// Whether [`recompress`] is worth its time. A file of more than five bytes for each four pixels shows photographs or noise: it takes
/// longer than any other, and saves less than a tenth.
pub fn is_recompressible(width: u32, height: u32, file_bytes: u64) -> bool {
    let pixels = u64::from(width) * u64::from(height);
    pixels <= MAX_PIXELS
        && file_bytes <= MAX_FILE_BYTES
        && file_bytes.saturating_mul(4) <= pixels.saturating_mul(5).max(4096)
}

/// The largest file for which [`recompress`] needs no more than `memory_bytes`, beside the file that it reads.
pub fn recompressed_bytes(width: u32, height: u32, memory_bytes: u64) -> u64 {
    let work = (u64::from(width) * u64::from(height)).saturating_add(RECOMPRESSION_BYTES);
    // A buffer that has grown, and the file that it is copied to.
    memory_bytes.saturating_sub(work) / 3
}

/// A smaller PNG with the same pixels, of at most `max_bytes`. `None` if there is none, or if the file is to be kept for another
/// reason: it is no PNG of a browser, it has too many pixels, or `is_stopped` has become true, which is asked for each row.
///
/// The number of channels can differ: an image is stored in shades of grey, or without transparency, if it has nothing else.
pub fn recompress(file: &[u8], max_bytes: usize, is_stopped: &dyn Fn() -> bool) -> Option<Vec<u8>> {
    let kept = chunks::kept(file)?;
    let mut reader = open(file)?;
    let (width, height) = (reader.info().width, reader.info().height);
    let channels = reader.info().color_type.samples();
    let is_opaque = channels == 3 || is_opaque(file, is_stopped)?;
    let drops_alpha = is_opaque && channels == 4;
    let (columns, rows) = (usize::try_from(width).ok()?, usize::try_from(height).ok()?);
    let channels = if drops_alpha { 3 } else { channels };
    let limits = Limits { max_bytes, is_stopped };
    let mut pixels = Pixels::Few(Indexed::new((columns, rows), channels));
    let mut opaque_row = Vec::new();
    while let Some(row) = reader.next_row().ok()? {
        let mut row = row.data();
        if limits.are_exceeded(pixels.written()) {
            return None;
        }
        if drops_alpha {
            opaque_row.clear();
            opaque_row.extend(row.as_chunks::<4>().0.iter().flat_map(|[red, green, blue, _]| [*red, *green, *blue]));
            row = &opaque_row;
        }
        if pixels.push(row, (columns, channels), limits).is_break() {
            return None;
        }
    }
    let smaller = match pixels {
        Pixels::Few(indexed) => indexed.write((width, height), &kept, limits)?,
        Pixels::Many(colours) => colours.write((width, height), &kept),
    };
    (smaller.len() <= max_bytes).then_some(smaller)
}

/// Opens a file, if it is a PNG as browsers make them.
fn open(file: &[u8]) -> Option<Reader<Cursor<&[u8]>>> {
    let mut decoder = png::Decoder::new(Cursor::new(file));
    // It comes from a pipe on the same machine.
    decoder.ignore_checksums(true);
    let info = decoder.read_header_info().ok()?;
    let (width, height) = info.size();
    let is_usual = matches!((info.bit_depth, info.color_type), (BitDepth::Eight, ColorType::Rgb | ColorType::Rgba));
    let pixels = u64::from(width) * u64::from(height);
    if !is_usual || info.interlaced || pixels > MAX_PIXELS || check_size(width, height).is_err() {
        return None;
    }
    decoder.read_info().ok()
}

/// Whether no pixel of an image with alpha is transparent. `None` if it cannot be decoded, or if the work is stopped.
fn is_opaque(file: &[u8], is_stopped: &dyn Fn() -> bool) -> Option<bool> {
    let mut reader = open(file)?;
    while let Some(row) = reader.next_row().ok()? {
        if is_stopped() {
            return None;
        }
        if row.data().as_chunks::<4>().0.iter().any(|[.., alpha]| *alpha < 255) {
            return Some(false);
        }
    }
    Some(true)
}

/// The rows so far.
enum Pixels {
    Few(Indexed),
    Many(Box<Colours>),
}

impl Pixels {
    /// Adds a row. Breaks if the limits are exceeded by the rows before, which are compressed with the first one of many colours.
    fn push(&mut self, row: &[u8], (columns, channels): (usize, usize), limits: Limits<'_>) -> ControlFlow<()> {
        match self {
            Self::Many(colours) => colours.push(row),
            Self::Few(indexed) => {
                if !indexed.add(row) {
                    let mut colours = Colours::new(columns, channels);
                    indexed.rows(|row| {
                        colours.push(row);
                        if limits.are_exceeded(colours.written()) {
                            ControlFlow::Break(())
                        } else {
                            ControlFlow::Continue(())
                        }
                    })?;
                    colours.push(row);
                    *self = Self::Many(Box::new(colours));
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// The bytes that are compressed so far.
    fn written(&self) -> usize {
        match self {
            Self::Few(_) => 0,
            Self::Many(colours) => colours.written(),
        }
    }
}

#[cfg(test)]
mod tests {
    use image::{DynamicImage, GrayImage, ImageFormat, Luma, Rgb, RgbImage, Rgba, RgbaImage};
    use proptest::prelude::*;

    use super::*;

    /// The file that a browser could make of the image.
    fn quick(image: &DynamicImage) -> Vec<u8> {
        let color = if image.color().has_alpha() { ColorType::Rgba } else { ColorType::Rgb };
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, image.width(), image.height());
        encoder.set_color(color);
        encoder.set_depth(BitDepth::Eight);
        encoder.set_deflate_compression(png::DeflateCompression::NoCompression);
        encoder.set_filter(png::Filter::Up);
        encoder.write_header().unwrap().write_image_data(image.as_bytes()).unwrap();
        file
    }

    fn smaller(file: &[u8]) -> Option<Vec<u8>> {
        recompress(file, usize::MAX, &|| false)
    }

    /// The type of the pixels in the smaller file, which are the same.
    #[track_caller]
    fn check(image: &DynamicImage) -> (ColorType, BitDepth) {
        let file = quick(image);
        let small = smaller(&file).unwrap();
        let read = image::load_from_memory_with_format(&small, ImageFormat::Png).unwrap();
        assert_eq!((read.width(), read.height()), (image.width(), image.height()));
        assert!(read.to_rgba8() == image.to_rgba8(), "{} x {}", image.width(), image.height());
        let mut decoder = png::Decoder::new(Cursor::new(&small));
        let info = decoder.read_header_info().unwrap();
        (info.color_type, info.bit_depth)
    }

    fn noise(x: u32, y: u32) -> [u8; 3] {
        let seed = (x + 1000 * y).wrapping_mul(2_654_435_761);
        [8, 16, 24].map(|shift| (seed >> shift) as u8)
    }

    #[test]
    fn pixels_are_stored_in_the_smallest_type() {
        let colours = |count: u32| {
            let colour = move |x: u32, y: u32| u8::try_from((x + 31 * y) % count).unwrap();
            DynamicImage::from(RgbImage::from_fn(61, 40, |x, y| Rgb([colour(x, y), 7, 200])))
        };
        for (count, expected) in [(1, 1), (2, 1), (3, 2), (4, 2), (5, 4), (16, 4), (17, 8), (256, 8)] {
            let depth = BitDepth::from_u8(expected).unwrap();
            assert_eq!(check(&colours(count)), (ColorType::Indexed, depth), "{count} colours");
        }
        let grey = GrayImage::from_fn(100, 40, |x, y| Luma([u8::try_from((x * y) % 256).unwrap()]));
        assert_eq!(check(&DynamicImage::from(grey).to_rgb8().into()), (ColorType::Grayscale, BitDepth::Eight));
        let many = RgbImage::from_fn(90, 80, |x, y| Rgb(noise(x, y)));
        assert_eq!(check(&many.clone().into()), (ColorType::Rgb, BitDepth::Eight));
        let opaque = DynamicImage::from(many).to_rgba8();
        assert_eq!(check(&opaque.clone().into()), (ColorType::Rgb, BitDepth::Eight));
        let mut clear = opaque;
        clear.put_pixel(89, 79, Rgba([1, 2, 3, 254]));
        assert_eq!(check(&clear.into()), (ColorType::Rgba, BitDepth::Eight));
        let few = RgbaImage::from_fn(30, 20, |x, y| Rgba([9, 8, 7, if x > y { 0 } else { 255 }]));
        assert_eq!(check(&few.into()), (ColorType::Indexed, BitDepth::One));
    }

    #[test]
    fn tall_wide_and_tiny_images_keep_their_pixels() {
        for (width, height) in [(1, 1), (1, 2), (2, 1), (3, 3), (16_384, 2), (2, 16_384), (1280, 4000)] {
            check(&RgbImage::from_fn(width, height, |x, y| Rgb([(x / 5) as u8, (y / 7) as u8, 0])).into());
            check(&RgbImage::from_pixel(width, height, Rgb([255; 3])).into());
            check(&RgbaImage::from_fn(width, height, |x, y| Rgba([1, (x ^ y) as u8, (y >> 8) as u8, x as u8])).into());
        }
    }

    #[test]
    fn image_gets_many_colours_in_its_last_row() {
        let image = RgbImage::from_fn(300, 200, |x, y| match y {
            199 => Rgb([u8::try_from(x % 256).unwrap(), u8::try_from(x / 256).unwrap(), 1]),
            _ => Rgb([255, 255, u8::try_from(x % 100).unwrap()]),
        });
        assert_eq!(check(&image.into()), (ColorType::Rgb, BitDepth::Eight));
    }

    #[test]
    fn text_on_a_plain_page_is_much_smaller() {
        let ink = |x: u32, y: u32| y % 24 < 14 && x > 40 && x < 600 && (x * 7 + (y % 24) * 3) % 11 < 4;
        let page =
            RgbImage::from_fn(1280, 720, |x, y| Rgb(if ink(x, y) { [(x % 90) as u8, 40, 40] } else { [255; 3] }));
        let mut quick = Cursor::new(Vec::new());
        let encoder = image::codecs::png::PngEncoder::new_with_quality(
            &mut quick,
            image::codecs::png::CompressionType::Fast,
            image::codecs::png::FilterType::Up,
        );
        page.write_with_encoder(encoder).unwrap();
        let quick = quick.into_inner();
        let small = smaller(&quick).unwrap();
        assert!(small.len() * 2 < quick.len(), "{} of {}", small.len(), quick.len());
    }

    #[test]
    fn other_files_are_kept() {
        let image = DynamicImage::from(RgbImage::from_pixel(20, 10, Rgb([1, 2, 3])));
        for other in [ImageFormat::Jpeg, ImageFormat::WebP] {
            let mut file = Cursor::new(Vec::new());
            image.write_to(&mut file, other).unwrap();
            assert!(smaller(&file.into_inner()).is_none());
        }
        let grey = DynamicImage::from(GrayImage::new(4, 4));
        let mut file = Cursor::new(Vec::new());
        grey.write_to(&mut file, ImageFormat::Png).unwrap();
        assert!(smaller(&file.into_inner()).is_none(), "browsers make no such images");
        let file = quick(&image);
        for end in 0..file.len() {
            assert!(smaller(&file[..end]).is_none(), "{end} bytes");
        }
        // The byte after the type of the pixels, the compression and the filters.
        let mut interlaced = file.clone();
        interlaced[28] = 1;
        assert!(smaller(&interlaced).is_none());
        let mut damaged = file;
        // The type of the first block of compressed pixels, which does not exist.
        damaged[43] = 0b111;
        assert!(smaller(&damaged).is_none());
    }

    #[test]
    fn work_ends_when_it_is_stopped_or_not_worth_it() {
        let file = quick(&RgbImage::from_fn(400, 300, |x, y| Rgb(noise(x, y))).into());
        let asked = std::cell::Cell::new(0);
        let is_stopped = || {
            asked.set(asked.get() + 1);
            asked.get() > 5
        };
        assert!(recompress(&file, usize::MAX, &is_stopped).is_none());
        assert_eq!(asked.get(), 6);
        let small = smaller(&file).unwrap();
        assert_eq!(recompress(&file, small.len(), &|| false).as_ref(), Some(&small), "it is the same every time");
        assert!(recompress(&file, small.len() - 1, &|| false).is_none());
        asked.set(0);
        let count = || {
            asked.set(asked.get() + 1);
            false
        };
        let larger = quick(&RgbImage::from_fn(400, 3000, |x, y| Rgb(noise(x, y))).into());
        assert!(recompress(&larger, 100_000, &count).is_none());
        assert!(asked.get() < 1500, "the rest is not decoded");
    }

    /// Each row has the shades of the one above, one brighter: the browser's file is small, and its palette has no repetitions.
    fn brighter_rows(height: u32) -> RgbImage {
        let shade = |x: u32| {
            let seed = (x ^ 0x5bd1).wrapping_mul(0x85eb_ca6b);
            (seed ^ (seed >> 13)).wrapping_mul(0xc2b2_ae35) >> 20
        };
        RgbImage::from_fn(4096, height, |x, y| Rgb([(shade(x) + y) as u8; 3]))
    }

    #[test]
    fn work_on_few_colours_has_the_same_limits() {
        let few = brighter_rows(200);
        // The last row has the 257th colour. All rows before are compressed with it.
        let mut many = few.clone();
        many.put_pixel(4095, 199, Rgb([1, 2, 3]));
        for image in [few, many] {
            let file = quick(&image.into());
            let asked = std::cell::Cell::new(0_u32);
            let ask = |most: u32| {
                asked.set(asked.get() + 1);
                asked.get() > most
            };
            // One question for each row that is decoded, and then one for each row that is compressed.
            assert!(recompress(&file, usize::MAX, &|| ask(230)).is_none());
            assert_eq!(asked.replace(0), 231);
            assert!(recompress(&file, 100_000, &|| ask(u32::MAX)).is_none());
            assert!(asked.get() < 350, "{} questions: the rest is not compressed", asked.get());
        }
    }

    #[test]
    fn images_with_too_many_pixels_are_kept() {
        let mut file = Vec::new();
        png::Encoder::new(&mut file, 6000, 4001).write_header().unwrap();
        assert!(open(&file).is_none());
        assert!(is_recompressible(1280, 16_384, 1 << 20) && !is_recompressible(2000, 16_384, 1 << 20));
        assert!(is_recompressible(1, 1, 90) && is_recompressible(1280, 720, 880_000));
        assert!(!is_recompressible(1280, 720, 1_474_457), "a photograph");
        assert!(is_recompressible(1280, 16_384, 4 << 20) && !is_recompressible(1280, 16_384, (4 << 20) + 1));
    }

    #[test]
    fn memory_is_that_of_the_pixels_and_of_both_buffers() {
        assert_eq!(recompressed_bytes(1280, 720, 1 << 20), 0);
        assert_eq!(recompressed_bytes(1000, 1000, 4_000_000 + (1 << 20)), 1_000_000);
    }

    /// Images of runs, of which each has a colour from some.
    fn images() -> impl Strategy<Value = DynamicImage> {
        let runs = proptest::collection::vec((0_usize..400, 1_u32..60), 1..200);
        let colours = proptest::collection::vec(any::<[u8; 4]>(), 1..400);
        (1_u32..70, 1_u32..60, runs, colours, 0_u8..4).prop_map(|(width, height, runs, colours, kind)| {
            let pixels = runs.iter().flat_map(|(colour, times)| (0..*times).map(move |_| *colour));
            let mut pixels = pixels.collect::<Vec<_>>().into_iter().cycle();
            let image = RgbaImage::from_fn(width, height, |_, _| {
                let [red, green, blue, alpha] = colours[pixels.next().unwrap_or(0) % colours.len()];
                match kind {
                    0 => Rgba([red, red, red, 255]),
                    1 => Rgba([red, green, blue, 255]),
                    _ => Rgba([red, green, blue, alpha]),
                }
            });
            match kind {
                0 | 3 => DynamicImage::from(image).to_rgb8().into(),
                _ => image.into(),
            }
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn all_images_keep_their_pixels(image in images()) {
            check(&image);
        }
    }
}
