//! Computes the perceptual hash of an image.
//!
//! The image is averaged to 32 by 32 gray cells, which are transformed by a discrete cosine transform (DCT-II). Each bit of
//! the hash says whether one of the 64 lowest frequencies is above their median, from the lowest frequency, in rows. All
//! is computed with integers, so that equal pixels have equal hashes on every machine.

use crate::picture::{Picture, PictureError};
use crate::rows::{Layout, rgba};

/// Cells in each direction that the image is averaged to.
const SIDE: usize = 32;
/// The same, as the unit of rows and columns.
const SIDE_UNITS: u64 = 32;
/// Frequencies in each direction.
const FREQUENCIES: usize = 8;
/// The value of a white cell.
const WHITE: u64 = 255_000;
/// `16384 * cos(n * π / 64)`, rounded. A table, because the last digit of a cosine depends on the machine.
const COSINES: [i64; 33] = [
    16384, 16364, 16305, 16207, 16069, 15893, 15679, 15426, 15137, 14811, 14449, 14053, 13623, 13160, 12665, 12140,
    11585, 11003, 10394, 9760, 9102, 8423, 7723, 7005, 6270, 5520, 4756, 3981, 3196, 2404, 1606, 804, 0,
];

/// The perceptual hash of an image.
///
/// # Errors
/// When the image cannot be read, or `is_stopped` returns true.
pub fn perceptual_hash(picture: Picture<'_>, is_stopped: &dyn Fn() -> bool) -> Result<u64, PictureError> {
    let cells = picture.rows(is_stopped, Cells::new, |cells, row| {
        cells.push(row);
        Ok(())
    })?;
    Ok(cells.hash())
}

/// The gray cells of an image.
struct Cells {
    layout: Layout,
    /// The row of the image that comes next.
    y: u64,
    /// Brightness times area, where a pixel has 32 by 32 units and a cell as many units as the image has pixels.
    sums: [[u64; SIDE]; SIDE],
}

impl Cells {
    const fn new(layout: Layout) -> Self {
        Self { layout, y: 0, sums: [[0; SIDE]; SIDE] }
    }

    /// Adds the next row of the image.
    fn push(&mut self, row: &[u8]) {
        let mut columns = [0; SIDE];
        for (x, pixel) in (0..).zip(rgba(row, self.layout.channels)) {
            let brightness = brightness(pixel);
            spread(x, self.layout.width.into(), |column, units| columns[column] += brightness * units);
        }
        let sums = &mut self.sums;
        spread(self.y, self.layout.height.into(), |row, units| {
            for (sum, column) in sums[row].iter_mut().zip(&columns) {
                *sum += column * units;
            }
        });
        self.y += 1;
    }

    fn hash(&self) -> u64 {
        let area = (u64::from(self.layout.width) * u64::from(self.layout.height)).max(1);
        // Never above that of white.
        let cells = self.sums.map(|row| row.map(|sum| i64::try_from(sum / area).unwrap_or(0)));
        let rows = cells.map(|row| transformed(&row));
        let mut frequencies = [0; FREQUENCIES * FREQUENCIES];
        for across in 0..FREQUENCIES {
            let column: [i64; SIDE] = rows.map(|row| row[across]);
            for (down, frequency) in transformed(&column).into_iter().enumerate() {
                frequencies[down * FREQUENCIES + across] = frequency;
            }
        }
        let mut sorted = frequencies;
        sorted.sort_unstable();
        // The median is between the two in the middle.
        let twice_median = sorted[sorted.len() / 2 - 1] + sorted[sorted.len() / 2];
        let bits = frequencies.iter().map(|frequency| u64::from(2 * frequency > twice_median));
        bits.fold(0, |hash, bit| hash << 1 | bit)
    }
}

/// The cells that a row or a column of the image is in, and how many of its 32 units are in each of them.
fn spread(at: u64, count: u64, mut add: impl FnMut(usize, u64)) {
    let (mut start, end) = (at * SIDE_UNITS, (at + 1) * SIDE_UNITS);
    while start < end {
        let cell = start / count;
        let part = end.min((cell + 1) * count) - start;
        add(usize::try_from(cell).map_or(SIDE - 1, |cell| cell.min(SIDE - 1)), part);
        start += part;
    }
}

/// The brightness of a pixel on a white page (ITU-R BT.601), in thousandths.
fn brightness([red, green, blue, alpha]: [u8; 4]) -> u64 {
    let [red, green, blue, alpha] = [red, green, blue, alpha].map(u64::from);
    let opaque = 299 * red + 587 * green + 114 * blue;
    (opaque * alpha + WHITE * (255 - alpha)) / 255
}

/// The lowest frequencies of some values (DCT-II, not normalized).
fn transformed(values: &[i64; SIDE]) -> [i64; FREQUENCIES] {
    std::array::from_fn(|frequency| {
        values.iter().enumerate().map(|(at, value)| value * cosine((2 * at + 1) * frequency)).sum()
    })
}

/// The cosine of `n * π / 64`, times 16384.
fn cosine(n: usize) -> i64 {
    let n = n % 128;
    // The second half of the period is the first one in reverse.
    let n = n.min(128 - n);
    if n <= 32 { COSINES[n] } else { -COSINES[64 - n] }
}

#[cfg(test)]
mod tests;
