//! Which rows each slice has.

/// The most slices of an image.
pub const MAX_SLICES: u32 = 64;

/// The part of a slice's height, above its lowest possible end, in which a better place to cut is looked for.
const SEARCHED_PART: u32 = 10;

/// Some rows of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    /// The first one.
    pub y: u32,
    /// Their number.
    pub height: u32,
}

impl Rows {
    /// The row after the last one.
    pub const fn end(self) -> u32 {
        self.y.saturating_add(self.height)
    }
}

/// Whether all pixels of a row are equal. A pixel has `channels` bytes.
pub fn is_uniform(row: &[u8], channels: usize) -> bool {
    // All are equal if each pixel equals the one before.
    row.get(channels..) == row.get(..row.len().saturating_sub(channels))
}

/// The rows of the slices of an image with `height` rows, from top to bottom: at most `slice_height` each, and at most
/// [`MAX_SLICES`] slices. `None` if that is impossible.
///
/// A slice ends with a uniform row if there is one among the last tenth of the rows that it could have, the lowest of
/// them, so that no line of text and no picture is cut. Otherwise it has `slice_height` rows. The search is shorter
/// where the rest of the image needs more of the slices that are left.
pub fn plan(height: u32, slice_height: u32, is_uniform: impl Fn(u32) -> bool) -> Option<Vec<Rows>> {
    let most = |slices: u32| slices.saturating_mul(slice_height);
    if height == 0 || height > most(MAX_SLICES) {
        return None;
    }
    let (mut slices, mut y, mut left) = (Vec::new(), 0, MAX_SLICES);
    while height - y > slice_height {
        left -= 1;
        let lowest = y + slice_height;
        let highest = (lowest - slice_height / SEARCHED_PART).max(height.saturating_sub(most(left)));
        let end = (highest..=lowest).rev().find(|end| is_uniform(end - 1)).unwrap_or(lowest);
        slices.push(Rows { y, height: end - y });
        y = end;
    }
    slices.push(Rows { y, height: height - y });
    Some(slices)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heights(height: u32, slice_height: u32, uniform: &[u32]) -> Vec<u32> {
        let slices = plan(height, slice_height, |row| uniform.contains(&row)).unwrap();
        let mut y = 0;
        for slice in &slices {
            assert_eq!(slice.y, y, "slices follow each other");
            assert!((1..=slice_height).contains(&slice.height), "{slice:?}");
            y = slice.end();
        }
        assert_eq!(y, height);
        slices.iter().map(|slice| slice.height).collect()
    }

    #[test]
    fn slices_end_with_the_lowest_uniform_row_of_the_last_tenth() {
        assert_eq!(heights(2500, 1000, &[]), [1000, 1000, 500]);
        assert_eq!(heights(1000, 1000, &[950]), [1000]);
        assert_eq!(heights(1001, 1000, &[]), [1000, 1]);
        // The slice ends with the uniform row, which is its last one.
        assert_eq!(heights(1500, 1000, &[920, 950, 951]), [952, 548]);
        assert_eq!(heights(1500, 1000, &[999, 1000]), [1000, 500]);
        // The first row of the last tenth, and the one above it.
        assert_eq!(heights(1500, 1000, &[899]), [900, 600]);
        assert_eq!(heights(1500, 1000, &[898]), [1000, 500]);
        // The next slice is counted from the last cut.
        assert_eq!(heights(2500, 1000, &[949, 1900]), [950, 951, 599]);
    }

    #[test]
    fn there_are_never_more_slices_than_allowed() {
        let all = |_| true;
        assert_eq!(plan(16_384, 256, all).unwrap().len(), 64);
        // Every slice could end 25 rows earlier, which would make 71 slices.
        let upper = |row: u32| row % 231 == 230;
        assert_eq!(plan(16_384, 256, upper).unwrap().len(), 64);
        assert!(plan(16_000, 256, upper).unwrap().len() <= 64);
        assert_eq!(plan(10_000, 256, upper).unwrap().len(), 44, "here there are enough slices");
        assert_eq!((plan(16_385, 256, all), plan(0, 256, all)), (None, None));
        assert_eq!(plan(u32::MAX, u32::MAX, all), Some(vec![Rows { y: 0, height: u32::MAX }]));
    }

    #[test]
    fn rows_of_one_colour_are_uniform() {
        assert!(is_uniform(&[1, 2, 3, 1, 2, 3], 3));
        assert!(!is_uniform(&[1, 2, 3, 1, 2, 4], 3));
        assert!(!is_uniform(&[1, 1, 1, 2], 1));
        assert!(is_uniform(&[7, 8, 9, 0], 4));
    }
}
