//! Judging pictures by their pixels.

use image::RgbImage;

/// Red, green and blue.
pub type Colour = [u8; 3];

/// How far a channel may be off in a lossless picture: an image that the browser scaled or decoded from JPEG.
pub const EXACT: u8 = 4;
/// How far a channel may be off in a picture that is itself a JPEG.
pub const LOSSY: u8 = 12;

/// A place of one colour, in pixels from the top left corner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Patch {
    pub x: u32,
    pub y: u32,
    pub width: u32,
    pub height: u32,
    pub colour: Colour,
}

impl Patch {
    /// The middle and four places towards the corners: a glyph, a spinner or half an image does not pass for a patch.
    pub fn samples(self) -> [(u32, u32); 5] {
        let Self { x, y, width, height, .. } = self;
        [(1, 1), (9, 1), (5, 5), (1, 9), (9, 9)].map(|(across, down)| (x + width * across / 10, y + height * down / 10))
    }

    /// Does the picture reach this far?
    pub fn is_inside(self, picture: &RgbImage) -> bool {
        self.x + self.width <= picture.width() && self.y + self.height <= picture.height()
    }
}

/// Reads a png, jpeg or webp file.
///
/// # Panics
/// When it is none of them.
#[track_caller]
pub fn decode(file: &[u8]) -> RgbImage {
    match image::load_from_memory(file) {
        Ok(picture) => picture.to_rgb8(),
        Err(error) => panic!("{} bytes that are not a picture: {error}", file.len()),
    }
}

/// Is the pixel at this place of this colour, give or take `tolerance` in each channel?
pub fn is_colour(picture: &RgbImage, (x, y): (u32, u32), colour: Colour, tolerance: u8) -> bool {
    picture
        .get_pixel_checked(x, y)
        .is_some_and(|pixel| pixel.0.iter().zip(colour).all(|(a, b)| a.abs_diff(b) <= tolerance))
}

/// Does the picture show the patch?
pub fn shows(picture: &RgbImage, patch: Patch, tolerance: u8) -> bool {
    patch.samples().into_iter().all(|at| is_colour(picture, at, patch.colour, tolerance))
}

/// # Panics
/// When the picture does not show the patch; the message tells what is there.
#[track_caller]
pub fn assert_shows(picture: &RgbImage, patch: Patch, tolerance: u8) {
    let seen = patch.samples().map(|(x, y)| picture.get_pixel_checked(x, y).map(|pixel| pixel.0));
    let (width, height) = picture.dimensions();
    assert!(shows(picture, patch, tolerance), "{patch:?} is not in the picture of {width}x{height}; there is {seen:?}");
}

/// # Panics
/// When the whole picture is not of this colour, as far as a grid of places tells.
#[track_caller]
pub fn assert_all(picture: &RgbImage, colour: Colour, tolerance: u8) {
    let (width, height) = picture.dimensions();
    assert_shows(picture, Patch { x: 0, y: 0, width, height, colour }, tolerance);
}

/// Is every pixel the same? Then nothing was drawn.
pub fn is_blank(picture: &RgbImage) -> bool {
    let mut pixels = picture.pixels();
    let first = pixels.next();
    pixels.all(|pixel| Some(pixel) == first)
}

#[cfg(test)]
mod tests {
    use image::Rgb;

    use super::*;

    const PATCH: Patch = Patch { x: 10, y: 20, width: 30, height: 40, colour: [9, 99, 199] };

    fn picture(change: impl Fn(u32, u32) -> bool) -> RgbImage {
        RgbImage::from_fn(60, 70, |x, y| {
            let inside = (10..40).contains(&x) && (20..60).contains(&y);
            Rgb(if inside && !change(x, y) { [12, 96, 199] } else { [255, 255, 255] })
        })
    }

    #[test]
    fn a_patch_is_seen_where_it_is_and_nowhere_else() {
        assert!(shows(&picture(|_, _| false), PATCH, 3));
        assert!(!shows(&picture(|_, _| false), PATCH, 2));
        assert!(!shows(&picture(|x, _| x < 20), PATCH, 3));
        assert!(!shows(&picture(|_, y| y > 50), PATCH, 3));
        for moved in [Patch { x: 25, ..PATCH }, Patch { y: 0, ..PATCH }, Patch { x: 50, y: 60, ..PATCH }] {
            assert!(!shows(&picture(|_, _| false), moved, 3), "{moved:?}");
        }
    }

    #[test]
    fn blank_is_one_colour() {
        assert!(is_blank(&RgbImage::new(9, 9)));
        assert!(!is_blank(&picture(|x, y| (x, y) != (20, 30))));
    }
}
