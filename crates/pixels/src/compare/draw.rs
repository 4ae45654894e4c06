//! Draws a difference: the later image, faded, with the changed regions in their colours and outlined.

use std::io::Write;

use png::{EncodingError, StreamWriter, Writer};

use crate::drawing::range;
use crate::region::Region;
use crate::rgb::on_white;
use crate::rows::rgba;

/// The colour of outlines, which contrasts with black and white.
const OUTLINE: [u8; 3] = [0xd6, 0x00, 0x6c];
/// The width of outlines in pixels.
const LINE: u32 = 3;
/// How much of the contrast is kept outside of the regions, as a divisor.
const FADED: u32 = 3;
/// Bytes that are written at a time.
const CHUNK: usize = 64 << 10;

/// Draws row by row.
pub(super) struct Drawing<'a, W: Write> {
    png: StreamWriter<'a, W>,
    boxes: Vec<OutlinedBox>,
    y: u32,
    row: Vec<[u8; 3]>,
}

/// A region, and its outline around it. The outline is inside where the region is at the edge of the image.
struct OutlinedBox {
    region: Edges,
    outer: Edges,
    inner: Edges,
}

/// A rectangle of pixels. The ends are exclusive.
#[derive(Clone, Copy)]
struct Edges {
    left: u32,
    top: u32,
    right: u32,
    bottom: u32,
}

impl<'a, W: Write> Drawing<'a, W> {
    /// Draws these regions into a PNG of this size.
    ///
    /// # Errors
    /// When the PNG cannot be written.
    pub(super) fn new(
        png: &'a mut Writer<W>,
        (width, height): (u32, u32),
        regions: &[Region],
    ) -> Result<Self, EncodingError> {
        let png = png.stream_writer_with_size(CHUNK)?;
        let boxes = regions.iter().map(|region| OutlinedBox::of(*region, width, height)).collect();
        let row = Vec::with_capacity(usize::try_from(width).unwrap_or_default());
        Ok(Self { png, boxes, y: 0, row })
    }

    /// Draws the next row of the image.
    ///
    /// # Errors
    /// When the PNG cannot be written.
    pub(super) fn push(&mut self, row: &[u8], channels: usize) -> Result<(), EncodingError> {
        let y = self.y;
        self.y += 1;
        self.row.clear();
        self.row.extend(rgba(row, channels).map(faded));
        for changed in self.boxes.iter().filter(|changed| changed.region.has_row(y)) {
            let Edges { left, right, .. } = changed.region;
            let pixels = range(left, right);
            let colors = rgba(row, channels).skip(pixels.start).map(on_white);
            self.row.get_mut(pixels).into_iter().flatten().zip(colors).for_each(|(pixel, color)| *pixel = color);
        }
        for OutlinedBox { outer, inner, .. } in self.boxes.iter().filter(|changed| changed.outer.has_row(y)) {
            let lines = match inner.has_row(y) {
                true => [range(outer.left, inner.left), range(inner.right, outer.right)],
                false => [range(outer.left, outer.right), 0..0],
            };
            for line in lines {
                self.row.get_mut(line).into_iter().flatten().for_each(|pixel| *pixel = OUTLINE);
            }
        }
        self.png.write_all(self.row.as_flattened()).map_err(EncodingError::IoError)
    }

    /// Ends the pixels of the PNG.
    ///
    /// # Errors
    /// When the PNG cannot be written, or rows are missing.
    pub(super) fn finish(self) -> Result<(), EncodingError> {
        self.png.finish()
    }
}

impl OutlinedBox {
    fn of(Region { x, y, width, height }: Region, image_width: u32, image_height: u32) -> Self {
        let region = Edges { left: x, top: y, right: x + width, bottom: y + height };
        let outer = Edges {
            left: x.saturating_sub(LINE),
            top: y.saturating_sub(LINE),
            right: (region.right + LINE).min(image_width),
            bottom: (region.bottom + LINE).min(image_height),
        };
        let inner = Edges {
            left: (outer.left + LINE).min(outer.right),
            top: outer.top + LINE,
            right: outer.right.saturating_sub(LINE).max((outer.left + LINE).min(outer.right)),
            bottom: outer.bottom.saturating_sub(LINE),
        };
        Self { region, outer, inner }
    }
}

impl Edges {
    fn has_row(&self, y: u32) -> bool {
        (self.top..self.bottom).contains(&y)
    }
}

/// A light gray, as bright as the colour is.
fn faded(pixel: [u8; 4]) -> [u8; 3] {
    let [red, green, blue] = on_white(pixel).map(u32::from);
    let luminance = (red * 54 + green * 183 + blue * 19) / 256;
    [u8::try_from(255 - (255 - luminance.min(255)) / FADED).unwrap_or(u8::MAX); 3]
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use image::{ImageFormat, RgbImage};

    use super::*;
    use crate::drawing::begin;

    const BLUE: [u8; 3] = [20, 40, 200];

    fn drawn(width: u32, height: u32, regions: &[Region]) -> RgbImage {
        let mut file = Vec::new();
        let mut png = begin(width, height, &mut file).unwrap();
        let mut drawing = Drawing::new(&mut png, (width, height), regions).unwrap();
        let row = BLUE.repeat(usize::try_from(width).unwrap());
        (0..height).for_each(|_| drawing.push(&row, 3).unwrap());
        drawing.finish().unwrap();
        png.finish().unwrap();
        image::load(Cursor::new(file), ImageFormat::Png).unwrap().into_rgb8()
    }

    #[test]
    fn region_keeps_its_colors_inside_of_an_outline() {
        let image = drawn(100, 80, &[Region { x: 32, y: 16, width: 16, height: 32 }]);
        let gray = image.get_pixel(0, 0).0;
        assert!(gray[0] == gray[1] && gray[1] == gray[2] && gray[0] > 170, "{gray:?}");
        let around = |x: u32, y: u32| {
            ((29..51).contains(&x) && (13..51).contains(&y), (32..48).contains(&x) && (16..48).contains(&y))
        };
        for (x, y, pixel) in image.enumerate_pixels() {
            let expected = match around(x, y) {
                (_, true) => BLUE,
                (true, false) => OUTLINE,
                (false, false) => gray,
            };
            assert_eq!(pixel.0, expected, "{x}, {y}");
        }
    }

    #[test]
    fn outline_is_inside_at_the_edges_of_the_image() {
        let image = drawn(40, 30, &[Region { x: 0, y: 0, width: 40, height: 30 }]);
        for (x, y, pixel) in image.enumerate_pixels() {
            let is_inside = (3..37).contains(&x) && (3..27).contains(&y);
            assert_eq!(pixel.0, if is_inside { BLUE } else { OUTLINE }, "{x}, {y}");
        }
        for (width, height) in [(1, 1), (4, 2), (2, 40)] {
            let image = drawn(width, height, &[Region { x: 0, y: 0, width, height }]);
            assert_eq!(image.get_pixel(0, 0).0, OUTLINE, "{width} x {height}");
        }
    }

    #[test]
    fn transparent_pixels_are_white() {
        assert_eq!(faded([0, 0, 0, 0]), [255; 3]);
        assert_eq!(faded([0, 0, 0, 255]), [170; 3]);
    }
}
