//! Checks images by their pixels.

use image::RgbImage;

pub use grabd_areas::Colour;

/// Allowed difference per channel in a lossless image, whose content the browser may have scaled or decoded from JPEG.
pub const EXACT: u8 = 4;
/// Allowed difference per channel in a JPEG image.
pub const LOSSY: u8 = 12;

/// A rectangle of one colour, in pixels from the top left corner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub struct Patch {
    pub x: u32,
    pub y: u32,
    pub width: u32,
    pub height: u32,
    pub colour: Colour,
}

impl Patch {
    /// The centre and four points towards the corners, so that a glyph, a spinner or half an image does not match.
    pub fn samples(self) -> [(u32, u32); 5] {
        let Self { x, y, width, height, .. } = self;
        [(1, 1), (9, 1), (5, 5), (1, 9), (9, 9)].map(|(across, down)| (x + width * across / 10, y + height * down / 10))
    }

    /// Whether the patch is inside the image.
    pub fn is_inside(self, image: &RgbImage) -> bool {
        self.x + self.width <= image.width() && self.y + self.height <= image.height()
    }
}

/// Decodes a PNG, JPEG or WebP file.
///
/// # Panics
/// If the file cannot be decoded.
#[track_caller]
pub fn decode(file: &[u8]) -> RgbImage {
    match image::load_from_memory(file) {
        Ok(image) => image.to_rgb8(),
        Err(error) => panic!("{} bytes are not an image: {error}", file.len()),
    }
}

/// Whether a pixel has this colour, within `tolerance` per channel.
pub fn is_colour(image: &RgbImage, (x, y): (u32, u32), colour: Colour, tolerance: u8) -> bool {
    image.get_pixel_checked(x, y).is_some_and(|pixel| grabd_areas::is_colour(pixel, colour, tolerance))
}

/// Whether the image shows the patch.
pub fn shows(image: &RgbImage, patch: Patch, tolerance: u8) -> bool {
    patch.samples().into_iter().all(|at| is_colour(image, at, patch.colour, tolerance))
}

/// # Panics
/// If the image does not show the patch.
#[track_caller]
pub fn assert_shows(image: &RgbImage, patch: Patch, tolerance: u8) {
    let seen = patch.samples().map(|(x, y)| image.get_pixel_checked(x, y).map(|pixel| pixel.0));
    let (width, height) = image.dimensions();
    assert!(shows(image, patch, tolerance), "{patch:?} is not in the image of {width}x{height}; found {seen:?}");
}

/// # Panics
/// If a sample of the image has another colour.
#[track_caller]
pub fn assert_all(image: &RgbImage, colour: Colour, tolerance: u8) {
    let (width, height) = image.dimensions();
    assert_shows(image, Patch { x: 0, y: 0, width, height, colour }, tolerance);
}

/// Whether all pixels have the same colour.
pub fn is_blank(image: &RgbImage) -> bool {
    let mut pixels = image.pixels();
    let first = pixels.next();
    pixels.all(|pixel| Some(pixel) == first)
}

#[cfg(test)]
mod tests {
    use image::Rgb;

    use super::*;

    const PATCH: Patch = Patch { x: 10, y: 20, width: 30, height: 40, colour: [9, 99, 199] };

    fn image(change: impl Fn(u32, u32) -> bool) -> RgbImage {
        RgbImage::from_fn(60, 70, |x, y| {
            let inside = (10..40).contains(&x) && (20..60).contains(&y);
            Rgb(if inside && !change(x, y) { [12, 96, 199] } else { [255, 255, 255] })
        })
    }

    #[test]
    fn shows_matches_a_patch_only_at_its_position_and_colour() {
        assert!(shows(&image(|_, _| false), PATCH, 3));
        assert!(!shows(&image(|_, _| false), PATCH, 2));
        assert!(!shows(&image(|x, _| x < 20), PATCH, 3));
        assert!(!shows(&image(|_, y| y > 50), PATCH, 3));
        for moved in [Patch { x: 25, ..PATCH }, Patch { y: 0, ..PATCH }, Patch { x: 50, y: 60, ..PATCH }] {
            assert!(!shows(&image(|_, _| false), moved, 3), "{moved:?}");
        }
    }

    #[test]
    fn is_blank_requires_a_single_colour() {
        assert!(is_blank(&RgbImage::new(9, 9)));
        assert!(!is_blank(&image(|x, y| (x, y) != (20, 30))));
    }
}
