use std::io::Cursor;

use image::imageops::{self, FilterType};
use image::{DynamicImage, ImageFormat, Rgb, RgbImage};

use super::*;
use crate::cut::Format;
use crate::picture::Source;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hash(u64);

impl Hash {
    fn distance(self, other: Self) -> u32 {
        (self.0 ^ other.0).count_ones()
    }
}

impl std::fmt::Display for Hash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A page with a header, two columns of text and a picture. `seed` changes all of it.
fn page(seed: u32) -> RgbImage {
    let noise = |x: u32, y: u32| {
        (x.wrapping_mul(7919) ^ y.wrapping_mul(104_729) ^ seed.wrapping_mul(31)).wrapping_mul(2_654_435_761) >> 28
    };
    RgbImage::from_fn(640, 400, |x, y| match (x, y) {
        (_, 0..40) => Rgb([30, (seed * 60 % 256) as u8, 120]),
        (x, y) if (x / 160 + y / 100 + seed).is_multiple_of(2 + seed % 3) => Rgb([(x / 4) as u8, (y / 2) as u8, 60]),
        (x, y) if y % 12 < 6 && noise(x / 4, y / 12) > 6 => Rgb([40; 3]),
        _ => Rgb([250; 3]),
    })
}

fn encoded(image: &RgbImage, format: ImageFormat) -> Vec<u8> {
    let mut file = Cursor::new(Vec::new());
    DynamicImage::from(image.clone()).write_to(&mut file, format).unwrap();
    file.into_inner()
}

fn hash_of(image: &RgbImage, format: Format) -> Hash {
    let encoding = match format {
        Format::Png => ImageFormat::Png,
        Format::Jpeg => ImageFormat::Jpeg,
        Format::Webp => ImageFormat::WebP,
    };
    let file = encoded(image, encoding);
    Hash(perceptual_hash(Picture { source: Source::Memory(&file), format }, &|| false).unwrap())
}

#[test]
fn hash_is_the_same_for_equal_pixels_and_similar_for_other_formats_and_sizes() {
    let image = page(1);
    let hash = hash_of(&image, Format::Png);
    assert_eq!(hash_of(&image, Format::Png), hash);
    // Lossless.
    assert_eq!(hash_of(&image, Format::Webp), hash);
    let lossy = hash_of(&image, Format::Jpeg);
    assert!(lossy.distance(hash) <= 4, "{lossy} {hash}");
    for (width, height) in [(320, 200), (1280, 800), (1000, 333)] {
        let scaled = hash_of(&imageops::resize(&image, width, height, FilterType::Triangle), Format::Png);
        assert!(scaled.distance(hash) <= 4, "{width} x {height}: {scaled} {hash}");
    }
}

#[test]
fn hash_of_another_page_is_far() {
    let hashes: Vec<_> = (1..6).map(|seed| hash_of(&page(seed), Format::Png)).collect();
    for (at, one) in hashes.iter().enumerate() {
        for other in &hashes[at + 1..] {
            assert!(one.distance(*other) > 10, "{one} {other}");
        }
    }
}

#[test]
fn small_change_moves_few_bits() {
    let mut image = page(1);
    let hash = hash_of(&image, Format::Png);
    (300..330).for_each(|x| (200..210).for_each(|y| image.put_pixel(x, y, Rgb([255, 0, 0]))));
    assert!(hash_of(&image, Format::Png).distance(hash) <= 4);
}

/// The values are those of the definition: a change would make stored hashes useless.
#[test]
fn hashes_of_known_images_never_change() {
    let half = |image: fn(u32, u32) -> bool| {
        RgbImage::from_fn(64, 64, |x, y| if image(x, y) { Rgb([255; 3]) } else { Rgb([0; 3]) })
    };
    let hash = |image: &RgbImage| hash_of(image, Format::Png).to_string();
    assert_eq!(hash(&half(|_, _| true)), "8000000000000000");
    assert_eq!(hash(&half(|_, _| false)), "0000000000000000");
    // Alternating signs of the odd frequencies across, and nothing down.
    assert_eq!(hash(&half(|x, _| x < 32)), "c400000000000000");
    assert_eq!(hash(&half(|_, y| y < 32)), "8080000000800000");
}

#[test]
fn image_smaller_than_the_cells_and_transparent_pixels_have_a_hash() {
    assert_eq!(hash_of(&RgbImage::from_pixel(1, 1, Rgb([255; 3])), Format::Png), Hash(1 << 63));
    assert_eq!((brightness([0, 0, 0, 0]), brightness([0, 0, 0, 255]), brightness([255; 4])), (WHITE, 0, WHITE));
    // All units of a row are in some cell, whatever the size.
    for count in [1, 5, 31, 32, 33, 100] {
        let mut units = [0; SIDE];
        (0..count).for_each(|at| spread(at, count, |cell, part| units[cell] += part));
        assert_eq!(units, [count; SIDE]);
    }
}

#[test]
fn stopped_hash_ends() {
    let file = encoded(&page(1), ImageFormat::Png);
    let picture = Picture { source: Source::Memory(&file), format: Format::Png };
    assert!(matches!(perceptual_hash(picture, &|| true), Err(PictureError::Stopped)));
}
