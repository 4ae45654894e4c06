//! What is kept of an image to compare it: a number for each 16 pixels of each row, and one for each row.

use crate::picture::{Picture, PictureError};
use crate::rows::{Layout, rgba};

/// The side of a cell in pixels, and the pixels of a row that one number stands for.
pub(super) const CELL: u32 = 16;
const STRETCH: usize = CELL as usize;

/// The largest differences of the mean brightness and colour of 16 pixels that are taken for traces of lossy compression,
/// which keeps less of the colours.
const TOLERANCES: [u8; 4] = [10, 24, 24, 0];

/// How images are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// Every pixel counts: for lossless images.
    Exact,
    /// Mean colours that are nearly the same count as equal: for lossy images.
    Tolerant,
}

/// What is kept of an image.
pub struct Sheet {
    precision: Precision,
    channels: usize,
    /// The pixels at the beginning of each row that are compared.
    width: usize,
    columns: usize,
    stretches: Vec<u32>,
    rows: Vec<u64>,
}

impl Sheet {
    /// What is kept of the first `width` pixels of the rows of an image.
    ///
    /// # Errors
    /// When the image cannot be read, or `is_stopped` returns true.
    pub fn read(
        picture: Picture<'_>,
        precision: Precision,
        width: u32,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Self, PictureError> {
        let begin = |layout| Self::new(precision, layout, width);
        picture.rows(is_stopped, begin, |sheet, row| {
            sheet.push(row);
            Ok(())
        })
    }

    /// For the first `width` pixels of the rows of an image.
    pub(super) fn new(precision: Precision, layout: Layout, width: u32) -> Self {
        let width = usize::try_from(width.min(layout.width)).unwrap_or(usize::MAX);
        let columns = width.div_ceil(STRETCH);
        let height = usize::try_from(layout.height).unwrap_or_default();
        let (stretches, rows) = (Vec::with_capacity(columns.saturating_mul(height)), Vec::with_capacity(height));
        Self { precision, channels: layout.channels, width, columns, stretches, rows }
    }

    /// The memory of a sheet in bytes.
    pub fn memory_bytes(width: u32, height: u32) -> u64 {
        u64::from(height) * (u64::from(width.div_ceil(CELL)) * 4 + 8)
    }

    /// Adds the next row.
    pub(super) fn push(&mut self, row: &[u8]) {
        let row = row.get(..self.width * self.channels).unwrap_or(row);
        let mut all = Hash::default();
        for stretch in row.chunks(STRETCH * self.channels.max(1)) {
            let pixels = rgba(stretch, self.channels);
            let number = match self.precision {
                Precision::Exact => {
                    let mut hash = Hash::default();
                    pixels.for_each(|pixel| hash.add(u32::from_le_bytes(pixel)));
                    let number = hash.short();
                    all.add(number);
                    number
                }
                Precision::Tolerant => {
                    let [brightness, blue, red] = mean_color(pixels);
                    // White and black, which pages mostly are, are in the middle of a step.
                    all.add((u32::from(brightness) + 16) >> 5);
                    u32::from_le_bytes([brightness, blue, red, 0])
                }
            };
            self.stretches.push(number);
        }
        self.rows.push(all.0);
    }

    /// A number for each row. Equal rows have equal numbers; with tolerance, similar rows often have.
    pub(super) fn rows(&self) -> &[u64] {
        &self.rows
    }

    /// Which stretches differ between a row of this image and one of the later image.
    pub(super) fn differing(&self, row: usize, later: &Self, later_row: usize) -> impl Iterator<Item = usize> {
        let pairs = self.row(row).iter().zip(later.row(later_row)).enumerate();
        let precision = self.precision;
        pairs.filter(move |(_, (one, other))| !is_same(precision, **one, **other)).map(|(column, _)| column)
    }

    fn row(&self, row: usize) -> &[u32] {
        let start = row * self.columns;
        self.stretches.get(start..start + self.columns).unwrap_or_default()
    }
}

fn is_same(precision: Precision, one: u32, other: u32) -> bool {
    match precision {
        Precision::Exact => one == other,
        Precision::Tolerant => {
            let channels = one.to_le_bytes().into_iter().zip(other.to_le_bytes());
            channels.zip(TOLERANCES).all(|((one, other), most)| one.abs_diff(other) <= most)
        }
    }
}

/// The mean brightness of pixels on a white background, and how blue and red they are (ITU-R BT.601).
fn mean_color(pixels: impl Iterator<Item = [u8; 4]>) -> [u8; 3] {
    let (mut sums, mut count) = ([0_i32; 3], 0_i32);
    for [red, green, blue, alpha] in pixels {
        let alpha = i32::from(alpha);
        for (sum, channel) in sums.iter_mut().zip([red, green, blue]) {
            *sum += (i32::from(channel) * alpha + 255 * (255 - alpha)) / 255;
        }
        count += 1;
    }
    let [red, green, blue] = sums.map(|sum| sum / count.max(1));
    let brightness = (77 * red + 150 * green + 29 * blue) / 256;
    let colors = [brightness, 128 + (blue - brightness) * 144 / 256, 128 + (red - brightness) * 183 / 256];
    colors.map(|color| u8::try_from(color.clamp(0, 255)).unwrap_or(u8::MAX))
}

/// A hash, which is equal on every machine. Nothing depends on its being hard to forge: a team compares its own images.
#[derive(Clone, Copy, Default)]
struct Hash(u64);

impl Hash {
    fn add(&mut self, word: u32) {
        // The multiplier is that of FxHash, the hash of the Rust compiler.
        self.0 = (self.0.rotate_left(5) ^ u64::from(word)).wrapping_mul(0x51_7c_c1_b7_27_22_0a_95);
    }

    /// The half that depends on all bits.
    fn short(self) -> u32 {
        u32::try_from(self.0 >> 32).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet(precision: Precision, pixels: &[[u8; 3]]) -> Sheet {
        let width = u32::try_from(pixels.len()).unwrap();
        let mut sheet = Sheet::new(precision, Layout { width, height: 1, channels: 3 }, width);
        sheet.push(pixels.as_flattened());
        sheet
    }

    fn differing(precision: Precision, one: &[[u8; 3]], other: &[[u8; 3]]) -> Vec<usize> {
        sheet(precision, one).differing(0, &sheet(precision, other), 0).collect()
    }

    #[test]
    fn smallest_change_of_a_pixel_counts_in_lossless_images_only() {
        let one = [[200, 100, 50]; 40];
        for at in [0, 15, 16, 39] {
            let mut other = one;
            other[at][1] ^= 1;
            assert_eq!(differing(Precision::Exact, &one, &other), [at / 16]);
            assert!(differing(Precision::Tolerant, &one, &other).is_empty());
            assert_ne!(sheet(Precision::Exact, &one).rows(), sheet(Precision::Exact, &other).rows());
        }
        let mut swapped = one;
        swapped[0] = [1, 2, 3];
        let mut other = one;
        other[1] = [1, 2, 3];
        assert_eq!(differing(Precision::Exact, &swapped, &other), [0], "the order of pixels counts");
        assert_eq!(differing(Precision::Tolerant, &[[255; 3]; 16], &[[240; 3]; 16]), [0]);
        assert_eq!(differing(Precision::Tolerant, &[[200, 40, 0]; 16], &[[0, 143, 0]; 16]), [0], "equally bright");
        assert_eq!(sheet(Precision::Tolerant, &[[255; 3]]).rows(), sheet(Precision::Tolerant, &[[247; 3]]).rows());
    }

    #[test]
    fn layout_of_the_pixels_does_not_matter() {
        let layout = |channels| Layout { width: 2, height: 1, channels };
        let rows = [
            (1, vec![7, 9]),
            (2, vec![7, 255, 9, 255]),
            (3, vec![7, 7, 7, 9, 9, 9]),
            (4, vec![7, 7, 7, 255, 9, 9, 9, 255]),
        ];
        for precision in [Precision::Exact, Precision::Tolerant] {
            let numbers = rows.clone().map(|(channels, row)| {
                let mut sheet = Sheet::new(precision, layout(channels), 2);
                sheet.push(&row);
                (sheet.rows, sheet.stretches)
            });
            assert!(numbers.iter().all(|number| number == &numbers[0]), "{numbers:?}");
        }
    }

    #[test]
    fn only_the_compared_width_is_kept() {
        let mut sheet = Sheet::new(Precision::Exact, Layout { width: 40, height: 1, channels: 1 }, 17);
        sheet.push(&[5; 40]);
        assert_eq!((sheet.columns, sheet.stretches.len()), (2, 2));
        let mut narrow = Sheet::new(Precision::Exact, Layout { width: 17, height: 1, channels: 1 }, 40);
        narrow.push(&[5; 17]);
        assert_eq!(narrow.stretches, sheet.stretches);
    }
}
