//! Finds the areas of a colour in an image.
//!
//! This is a package of its own because images have millions of pixels: unlike the tests, it is built with optimization.

use std::collections::HashSet;

use image::{Rgb, RgbImage};

/// Red, green and blue.
pub type Colour = [u8; 3];

/// A connected area of a colour, or all pixels of a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    /// The first column.
    pub left: u32,
    /// The first row.
    pub top: u32,
    /// The column after the last one.
    pub right: u32,
    /// The row after the last one.
    pub bottom: u32,
    /// How many pixels have the colour.
    pub pixels: usize,
}

impl Area {
    /// Width and height of the rectangle around it, in pixels.
    pub fn size(self) -> (u32, u32) {
        (self.right - self.left, self.bottom - self.top)
    }

    const fn at(x: u32, y: u32) -> Self {
        Self { left: x, top: y, right: x + 1, bottom: y + 1, pixels: 0 }
    }

    fn add(&mut self, x: u32, y: u32) {
        self.left = self.left.min(x);
        self.top = self.top.min(y);
        self.right = self.right.max(x + 1);
        self.bottom = self.bottom.max(y + 1);
        self.pixels += 1;
    }
}

/// Whether a pixel has this colour, within `tolerance` per channel.
pub fn is_colour(&Rgb(pixel): &Rgb<u8>, colour: Colour, tolerance: u8) -> bool {
    pixel.into_iter().zip(colour).all(|(seen, expected)| seen.abs_diff(expected) <= tolerance)
}

/// The number of pixels of a colour, within `tolerance` per channel.
pub fn count(image: &RgbImage, colour: Colour, tolerance: u8) -> usize {
    image.pixels().filter(|pixel| is_colour(pixel, colour, tolerance)).count()
}

/// All pixels of a colour, within `tolerance` per channel. `None` if there are none.
pub fn bounds(image: &RgbImage, colour: Colour, tolerance: u8) -> Option<Area> {
    let mut area: Option<Area> = None;
    for (x, y, pixel) in image.enumerate_pixels() {
        if is_colour(pixel, colour, tolerance) {
            area.get_or_insert_with(|| Area::at(x, y)).add(x, y);
        }
    }
    area
}

/// The connected areas of a colour, within `tolerance` per channel, in the order of their first pixels. Pixels that touch
/// at corners only are not connected.
pub fn areas(image: &RgbImage, colour: Colour, tolerance: u8) -> Vec<Area> {
    let (width, height) = image.dimensions();
    let index = |x: u32, y: u32| y as usize * width as usize + x as usize;
    // Pixels of the colour that belong to no area yet.
    let mut open: Vec<bool> = image.pixels().map(|pixel| is_colour(pixel, colour, tolerance)).collect();
    let mut found = Vec::new();
    let mut stack = Vec::new();
    for y in 0..height {
        for x in 0..width {
            if !std::mem::take(&mut open[index(x, y)]) {
                continue;
            }
            let mut area = Area::at(x, y);
            stack.push((x, y));
            while let Some((x, y)) = stack.pop() {
                area.add(x, y);
                for (x, y) in [(x.wrapping_sub(1), y), (x + 1, y), (x, y.wrapping_sub(1)), (x, y + 1)] {
                    if x < width && y < height && std::mem::take(&mut open[index(x, y)]) {
                        stack.push((x, y));
                    }
                }
            }
            found.push(area);
        }
    }
    found
}

/// The number of different colours.
pub fn colours(image: &RgbImage) -> usize {
    image.pixels().collect::<HashSet<_>>().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RED: Colour = [250, 0, 0];

    /// White, with the pixels of `red` in red.
    fn image(red: &[(u32, u32)]) -> RgbImage {
        RgbImage::from_fn(5, 4, |x, y| Rgb(if red.contains(&(x, y)) { RED } else { [255; 3] }))
    }

    #[test]
    fn areas_are_connected_by_edges() {
        // An L, a pixel that touches it at a corner, and one in the last corner of the image.
        let image = image(&[(0, 0), (0, 1), (1, 1), (2, 2), (4, 3)]);
        let area = |left, top, right, bottom, pixels| Area { left, top, right, bottom, pixels };
        assert_eq!(areas(&image, RED, 0), [area(0, 0, 2, 2, 3), area(2, 2, 3, 3, 1), area(4, 3, 5, 4, 1)]);
        assert_eq!(bounds(&image, RED, 0), Some(area(0, 0, 5, 4, 5)));
        assert_eq!(area(0, 0, 2, 2, 3).size(), (2, 2));
        assert_eq!((count(&image, RED, 0), colours(&image)), (5, 2));
    }

    #[test]
    fn tolerance_is_for_each_channel() {
        let image = image(&[(3, 3)]);
        assert_eq!(count(&image, [253, 3, 3], 3), 1);
        assert_eq!(count(&image, [253, 3, 4], 3), 0);
        assert_eq!((bounds(&image, [253, 3, 4], 3), areas(&image, [253, 3, 4], 3)), (None, Vec::new()));
    }
}
