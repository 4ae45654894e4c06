//! Compares two images row by row, after their rows were aligned.

use std::ops::Range;

use super::align::align;
use super::grid::Grid;
use super::sheet::{CELL, Sheet};
use crate::picture::Size;

/// The cells of the later image that differ from the earlier one.
///
/// Rows of the later image that the earlier one does not have are changed as a whole. Where rows of the earlier image are
/// missing, the cells at that place are changed. If the images differ in width, what only the later one has is changed, or
/// its right edge if it is narrower.
pub fn changes(earlier: &Sheet, earlier_size: Size, later: &Sheet, size: Size) -> Grid {
    let mut grid = Grid::new(size.width, size.height);
    let mut comparison = Comparison { earlier, later, grid: &mut grid };
    let (mut old, mut new) = (0, 0);
    let end = (earlier.rows().len(), later.rows().len());
    for (at_old, at_new) in align(earlier.rows(), later.rows()) {
        comparison.gap(&(old..at_old), &(new..at_new));
        comparison.pair(at_old, at_new);
        (old, new) = (at_old + 1, at_new + 1);
    }
    comparison.gap(&(old..end.0), &(new..end.1));
    let common = usize::try_from(earlier_size.width.min(size.width) / CELL).unwrap_or(usize::MAX);
    let from = match earlier_size.width.cmp(&size.width) {
        std::cmp::Ordering::Less => common,
        std::cmp::Ordering::Equal => grid.columns(),
        std::cmp::Ordering::Greater => grid.columns().saturating_sub(1),
    };
    (0..later.rows().len()).for_each(|y| grid.mark_from(from, y));
    grid
}

struct Comparison<'a> {
    earlier: &'a Sheet,
    later: &'a Sheet,
    grid: &'a mut Grid,
}

impl Comparison<'_> {
    /// Compares rows between two matches.
    fn gap(&mut self, old: &Range<usize>, new: &Range<usize>) {
        let common = old.len().min(new.len());
        let above = self.split(old, new, common);
        let below = common - above;
        (0..above).for_each(|at| self.pair(old.start + at, new.start + at));
        (1..=below).for_each(|at| self.pair(old.end - at, new.end - at));
        if new.len() > common {
            (new.start + above..new.end - below).for_each(|y| self.grid.mark_from(0, y));
        } else if old.len() > common {
            let last = self.later.rows().len().saturating_sub(1);
            self.grid.mark_from(0, (new.start + above).min(last));
        }
    }

    /// How many rows of a gap are compared from its beginning, if the rest is compared from its end: the number with which
    /// least differs. Rows are then inserted, or missing, between the two parts.
    fn split(&self, old: &Range<usize>, new: &Range<usize>, common: usize) -> usize {
        if old.len() == new.len() {
            return common;
        }
        let differing = |at_old, at_new| self.earlier.differing(at_old, self.later, at_new).count();
        let from_start = |at: usize| differing(old.start + at, new.start + at);
        let from_end = |at: usize| differing(old.end - at, new.end - at);
        // With all rows compared from the end, then with one more from the beginning each time.
        let mut total: usize = (1..=common).map(from_end).sum();
        let (mut best, mut least) = (0, total);
        for above in 1..=common {
            total = total + from_start(above - 1) - from_end(common - above + 1);
            if total < least {
                (best, least) = (above, total);
            }
        }
        best
    }

    fn pair(&mut self, old: usize, new: usize) {
        for column in self.earlier.differing(old, self.later, new) {
            self.grid.mark(column, new);
        }
    }
}

#[cfg(test)]
mod tests {
    use image::{Rgb, RgbImage};
    use proptest::prelude::*;

    use super::super::sheet::Precision;
    use super::*;
    use crate::region::Region;
    use crate::rows::Layout;

    fn sheet(image: &RgbImage, width: u32) -> Sheet {
        let layout = Layout { width: image.width(), height: image.height(), channels: 3 };
        let mut sheet = Sheet::new(Precision::Exact, layout, width);
        let row = usize::try_from(image.width()).unwrap() * 3;
        image.as_raw().chunks_exact(row.max(1)).for_each(|row| sheet.push(row));
        sheet
    }

    fn compare(earlier: &RgbImage, later: &RgbImage) -> Grid {
        let size = |image: &RgbImage| Size { width: image.width(), height: image.height() };
        let width = earlier.width().min(later.width());
        changes(&sheet(earlier, width), size(earlier), &sheet(later, width), size(later))
    }

    /// Every row is unique, and blank in the last 80 columns.
    fn page(width: u32, height: u32, seed: u32) -> RgbImage {
        RgbImage::from_fn(width, height, |x, y| match x + 80 < width {
            true => Rgb([x ^ y, y + seed, (y >> 8) ^ seed].map(|of| u8::try_from(of & 255).unwrap())),
            false => Rgb([255; 3]),
        })
    }

    fn region(x: u32, y: u32, width: u32, height: u32) -> Region {
        Region { x, y, width, height }
    }

    fn draw(image: &mut RgbImage, Region { x, y, width, height }: Region) {
        for (at_x, at_y) in (y..y + height).flat_map(|y| (x..x + width).map(move |x| (x, y))) {
            image.put_pixel(at_x, at_y, Rgb([1, 2, 3]));
        }
    }

    /// A page with this many rows put in before `at`.
    fn inserted(page: &RgbImage, at: u32, rows: u32) -> RgbImage {
        RgbImage::from_fn(page.width(), page.height() + rows, |x, y| match y {
            y if y < at => *page.get_pixel(x, y),
            y if y < at + rows => Rgb([9, 9, 9]),
            y => *page.get_pixel(x, y - rows),
        })
    }

    #[test]
    fn change_of_a_box_is_found_at_its_cells() {
        let earlier = page(640, 480, 0);
        let mut later = earlier.clone();
        draw(&mut later, region(70, 100, 5, 3));
        assert_eq!(compare(&earlier, &later).regions(50), [region(64, 96, 16, 16)]);
        assert_eq!(compare(&earlier, &earlier).changed_ppm(), 0);
    }

    #[test]
    fn insertion_does_not_change_what_is_below() {
        let earlier = page(640, 960, 0);
        for at in [0, 123, 960] {
            let later = inserted(&earlier, at, 37);
            let regions = compare(&earlier, &later).regions(50);
            assert_eq!(regions.len(), 1, "{regions:?}");
            assert_eq!((regions[0].x, regions[0].width), (0, 640));
            assert!(regions[0].y <= at && regions[0].y + regions[0].height >= at + 37 && regions[0].height <= 64);
        }
        // A box below changed as well.
        let mut later = inserted(&earlier, 0, 37);
        draw(&mut later, region(320, 640, 16, 16));
        assert_eq!(compare(&earlier, &later).regions(50), [region(0, 0, 640, 48), region(320, 640, 16, 16)]);
    }

    #[test]
    fn insertion_into_a_column_beside_a_changed_one_is_found() {
        // No whole row is equal, because the left column changed everywhere.
        let (mut earlier, mut later) = (page(640, 600, 0), inserted(&page(640, 600, 0), 300, 40));
        draw(&mut earlier, region(0, 0, 16, 600));
        for y in 0..640 {
            later.put_pixel(3, y, Rgb([7, 7, u8::try_from(y & 255).unwrap()]));
        }
        let grid = compare(&earlier, &later);
        // The left column, and the inserted rows over the whole width.
        let expected = 1_000_000_u64 * (640 * 16 + 64 * (640 - 16)) / (640 * 640);
        assert_eq!(u64::from(grid.changed_ppm()), expected);
    }

    #[test]
    fn removal_marks_the_place() {
        let later = page(640, 480, 0);
        for (at, y) in [(0, 0), (100, 96), (480, 464)] {
            let regions = compare(&inserted(&later, at, 50), &later).regions(50);
            assert_eq!(regions, [region(0, y, 640, 16)], "{at}");
        }
    }

    #[test]
    fn different_pages_change_as_a_whole() {
        let (earlier, later) = (RgbImage::from_pixel(640, 480, Rgb([0; 3])), page(640, 300, 77));
        let mut other = later.clone();
        draw(&mut other, region(560, 0, 80, 300));
        assert_eq!(compare(&earlier, &other).changed_ppm(), 1_000_000);
        let nothing = RgbImage::new(640, 0);
        assert_eq!(compare(&nothing, &later).changed_ppm(), 1_000_000);
        assert_eq!(compare(&later, &nothing).changed_ppm(), 0, "an image without pixels has no cells");
    }

    #[test]
    fn different_widths_change_what_is_not_common() {
        let wide =
            RgbImage::from_fn(650, 64, |x, y| Rgb([u8::try_from(x & 255).unwrap(), u8::try_from(y).unwrap(), 0]));
        let narrow = image::imageops::crop_imm(&wide, 0, 0, 600, 64).to_image();
        assert_eq!(compare(&narrow, &wide).regions(50), [region(592, 0, 58, 64)]);
        assert_eq!(compare(&wide, &narrow).regions(50), [region(592, 0, 8, 64)], "the right edge");
    }

    proptest! {
        #[test]
        fn equal_images_have_no_changes_and_others_have_some(
            width in 1_u32..70,
            height in 1_u32..70,
            pixels in prop::collection::vec(0_u8..3, 70 * 70),
            (x, y) in (0_u32..70, 0_u32..70),
        ) {
            let at = |x: u32, y: u32| pixels[usize::try_from(y * 70 + x).unwrap()];
            let earlier = RgbImage::from_fn(width, height, |x, y| Rgb([at(x, y); 3]));
            prop_assert_eq!(compare(&earlier, &earlier).changed_ppm(), 0);
            let mut later = earlier.clone();
            let (x, y) = (x % width, y % height);
            later.put_pixel(x, y, Rgb([77; 3]));
            let grid = compare(&earlier, &later);
            prop_assert!(grid.changed_ppm() > 0);
            let covers = |of: &Region| (of.x..of.x + of.width).contains(&x) && (of.y..of.y + of.height).contains(&y);
            prop_assert!(grid.regions(50).iter().any(covers), "{:?} at {}, {}", grid.regions(50), x, y);
        }
    }
}
