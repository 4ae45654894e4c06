//! Draws marks row by row: outlines, and numbers on a background of the same colour.

use std::io::Write;

use png::{EncodingError, StreamWriter, Writer};

use super::labels::{self, DIGIT, GAP, Label};
use crate::drawing::range;
use crate::region::Region;
use crate::rgb::on_white;
use crate::rows::rgba;

/// Colours that are used in turn. White on each has a contrast of at least 4.5.
const COLORS: [[u8; 3]; 6] = [
    [0xc4, 0x00, 0x62],
    [0x00, 0x57, 0xb8],
    [0xa3, 0x3b, 0x00],
    [0x00, 0x6b, 0x3c],
    [0x6a, 0x1b, 0x9a],
    [0x7a, 0x5c, 0x00],
];
const INK: [u8; 3] = [0xff; 3];
/// The width of outlines, and the size of a cell of a digit, in pixels of an image with one pixel per CSS pixel.
const UNIT: u32 = 2;
/// Bytes that are written at a time.
const CHUNK: usize = 64 << 10;

/// Rows of the digits, each with the leftmost of five cells in its highest bit.
const DIGITS: [[u8; 7]; 10] = [
    [0b01110, 0b10001, 0b10011, 0b10101, 0b11001, 0b10001, 0b01110],
    [0b00100, 0b01100, 0b00100, 0b00100, 0b00100, 0b00100, 0b01110],
    [0b01110, 0b10001, 0b00001, 0b00010, 0b00100, 0b01000, 0b11111],
    [0b11111, 0b00010, 0b00100, 0b00010, 0b00001, 0b10001, 0b01110],
    [0b00010, 0b00110, 0b01010, 0b10010, 0b11111, 0b00010, 0b00010],
    [0b11111, 0b10000, 0b11110, 0b00001, 0b00001, 0b10001, 0b01110],
    [0b00110, 0b01000, 0b10000, 0b11110, 0b10001, 0b10001, 0b01110],
    [0b11111, 0b00001, 0b00010, 0b00100, 0b01000, 0b01000, 0b01000],
    [0b01110, 0b10001, 0b10001, 0b01110, 0b10001, 0b10001, 0b01110],
    [0b01110, 0b10001, 0b10001, 0b01111, 0b00001, 0b00010, 0b01100],
];

/// Draws row by row.
pub(super) struct Drawing<'a, W: Write> {
    png: StreamWriter<'a, W>,
    boxes: &'a [Region],
    labels: Vec<Label>,
    /// The width of outlines, and the size of a cell of a digit, in pixels.
    unit: u32,
    y: u32,
    row: Vec<[u8; 3]>,
}

impl<'a, W: Write> Drawing<'a, W> {
    /// Draws marks on these boxes into a PNG of this size.
    ///
    /// # Errors
    /// When the PNG cannot be written.
    pub(super) fn new(
        png: &'a mut Writer<W>,
        (width, height): (u32, u32),
        boxes: &'a [Region],
        scale: u32,
    ) -> Result<Self, EncodingError> {
        let png = png.stream_writer_with_size(CHUNK)?;
        let unit = UNIT * scale.max(1);
        let labels = labels::place(boxes, (width, height), unit);
        let row = Vec::with_capacity(usize::try_from(width).unwrap_or_default());
        Ok(Self { png, boxes, labels, unit, y: 0, row })
    }

    /// Draws the next row of the image.
    ///
    /// # Errors
    /// When the PNG cannot be written.
    pub(super) fn push(&mut self, row: &[u8], channels: usize) -> Result<(), EncodingError> {
        self.row.clear();
        self.row.extend(rgba(row, channels).map(on_white));
        for (marked, color) in self.boxes.iter().zip(COLORS.into_iter().cycle()) {
            if let Some(y) = row_of(marked, self.y) {
                outline(&mut self.row, marked, y, self.unit, color);
            }
        }
        // Above all outlines.
        for (label, color) in self.labels.iter().zip(COLORS.into_iter().cycle()) {
            if let Some(y) = row_of(&label.place, self.y) {
                paint(&mut self.row, label.place.x, label.place.width, color);
                digits(&mut self.row, label, y / self.unit, self.unit);
            }
        }
        self.y += 1;
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

/// The row of a box that is at `y` of the image.
fn row_of(place: &Region, y: u32) -> Option<u32> {
    y.checked_sub(place.y).filter(|row| *row < place.height)
}

fn outline(row: &mut [[u8; 3]], marked: &Region, y: u32, line: u32, color: [u8; 3]) {
    let Region { x, width, height, .. } = *marked;
    if y < line || y + line >= height {
        paint(row, x, width, color);
    } else {
        let line = line.min(width);
        paint(row, x, line, color);
        paint(row, x + width - line, line, color);
    }
}

/// Draws the cells in a row of a label.
fn digits(row: &mut [[u8; 3]], label: &Label, cell_row: u32, unit: u32) {
    let Some(cell_row) = cell_row.checked_sub(GAP).and_then(|at| usize::try_from(at).ok()) else { return };
    let mut x = label.place.x + GAP * unit;
    for digit in &label.digits {
        let cells = DIGITS.get(usize::from(*digit)).and_then(|rows| rows.get(cell_row)).copied().unwrap_or(0);
        for column in (0..DIGIT.0).filter(|column| cells & 1 << (DIGIT.0 - 1 - column) != 0) {
            paint(row, x + column * unit, unit, INK);
        }
        x += (DIGIT.0 + GAP) * unit;
    }
}

/// Colours pixels, as far as they are in the row.
fn paint(row: &mut [[u8; 3]], x: u32, width: u32, color: [u8; 3]) {
    let all = row.len();
    let pixels = range(x, x + width);
    let pixels = pixels.start.min(all)..pixels.end.min(all);
    row.get_mut(pixels).into_iter().flatten().for_each(|pixel| *pixel = color);
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use image::{ImageFormat, RgbImage};

    use super::*;
    use crate::drawing::begin;

    const PAGE: [u8; 3] = [20, 40, 200];

    fn drawn(width: u32, height: u32, boxes: &[Region], scale: u32) -> RgbImage {
        let mut file = Vec::new();
        let mut png = begin(width, height, &mut file).unwrap();
        let mut drawing = Drawing::new(&mut png, (width, height), boxes, scale).unwrap();
        let row = PAGE.repeat(usize::try_from(width).unwrap());
        (0..height).for_each(|_| drawing.push(&row, 3).unwrap());
        drawing.finish().unwrap();
        png.finish().unwrap();
        image::load(Cursor::new(file), ImageFormat::Png).unwrap().into_rgb8()
    }

    #[test]
    fn box_is_outlined_and_its_inside_is_the_page() {
        let image = drawn(100, 80, &[Region { x: 20, y: 30, width: 40, height: 30 }], 1);
        for (x, y) in [(20, 30), (59, 59), (21, 45), (58, 45), (40, 31), (40, 58)] {
            assert_eq!(image.get_pixel(x, y).0, COLORS[0], "{x}, {y}");
        }
        for (x, y) in [(22, 45), (57, 45), (40, 32), (40, 57), (19, 45), (60, 45), (40, 60), (80, 10)] {
            assert_eq!(image.get_pixel(x, y).0, PAGE, "{x}, {y}");
        }
    }

    #[test]
    fn number_is_drawn_in_cells() {
        // A box at the top has its number inside. Its second one is above the first's right corner.
        let image = drawn(60, 40, &[Region { x: 0, y: 0, width: 60, height: 40 }], 2);
        let cell = |column: u32, row: u32| image.get_pixel((column + GAP) * 4 + 1, (row + GAP) * 4 + 2).0;
        for (row, cells) in (0..7).zip(DIGITS[1]) {
            for column in 0..5 {
                let expected = if cells & 1 << (4 - column) != 0 { INK } else { COLORS[0] };
                assert_eq!(cell(column, row), expected, "{column}, {row}");
            }
        }
    }

    #[test]
    fn marks_beyond_the_edges_of_the_image_are_cut() {
        let image = drawn(
            10,
            6,
            &[Region { x: 8, y: 4, width: 90, height: 90 }, Region { x: 0, y: 0, width: 1, height: 1 }],
            3,
        );
        assert_eq!((image.width(), image.height()), (10, 6));
    }
}
