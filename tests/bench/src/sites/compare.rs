//! The rule by which a picture counts as right.
//!
//! A picture and its reference are compared block by block. A block that differs between two references of the same page
//! is restless: it belongs to an animation, or to content that is random. Restless blocks and their neighbours say
//! nothing about a picture. Of all others, fewer than [`WRONG_FROM`] may differ.

use image::{Rgb, RgbImage};

/// Side of a block in CSS pixels.
const BLOCK: u32 = 8;
/// A pixel differs if a channel differs by more than this.
const TOLERANCE: u8 = 24;
/// A block differs if more than one of this many pixels differs.
const PIXELS_OF_A_BLOCK: u32 = 11;
/// A picture is wrong from this number of differing blocks on: an area of 50 by 50 CSS pixels.
const WRONG_FROM: usize = 40;
/// Heights and widths that differ by fewer CSS pixels are equal.
const SAME_SIZE: u32 = 8;
/// A picture cannot be judged if more than one of this many blocks is restless.
const MOST_RESTLESS: usize = 2;

/// A block of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Block {
    Same,
    Restless,
    Differs,
}

/// An image that a picture may look like, from a row on.
#[derive(Clone, Copy)]
pub(super) struct Reference<'a> {
    pub(super) image: &'a RgbImage,
    /// The first row of pixels for which it counts.
    pub(super) from: u32,
}

/// The blocks of a picture, row by row.
pub(super) struct Comparison {
    pub(super) columns: usize,
    pub(super) blocks: Vec<Block>,
    /// Side of a block in pixels.
    pub(super) side: u32,
}

impl Comparison {
    pub(super) fn count(&self, kind: Block) -> usize {
        self.blocks.iter().filter(|block| **block == kind).count()
    }

    /// The part of the blocks that differs, from 0 to 1.
    pub(super) fn ratio(&self) -> f64 {
        self.count(Block::Differs) as f64 / self.blocks.len().max(1) as f64
    }

    pub(super) fn is_right(&self) -> bool {
        self.count(Block::Differs) < WRONG_FROM
    }

    /// Whether too much of the page never rests.
    pub(super) fn is_restless(&self) -> bool {
        self.count(Block::Restless) * MOST_RESTLESS > self.blocks.len()
    }

    /// The first row of pixels that differs.
    pub(super) fn first_difference(&self) -> Option<u32> {
        let at = self.blocks.iter().position(|block| *block == Block::Differs)?;
        u32::try_from(at / self.columns.max(1)).ok().map(|row| row * self.side)
    }

    /// The reference in grey, with what differs in red and what is restless in yellow.
    pub(super) fn draw(&self, reference: &RgbImage) -> RgbImage {
        let rows = self.blocks.len() / self.columns.max(1);
        let [width, height] = [self.columns, rows].map(|count| u32::try_from(count).unwrap_or_default() * self.side);
        RgbImage::from_fn(width, height, |x, y| {
            let grey = reference.get_pixel_checked(x, y).map_or(255, |Rgb([red, green, blue])| {
                let sum = u32::from(*red) + u32::from(*green) + u32::from(*blue);
                u8::try_from(128 + sum / 6).unwrap_or(u8::MAX)
            });
            let at = (y / self.side) as usize * self.columns + (x / self.side) as usize;
            match self.blocks.get(at) {
                Some(Block::Differs) => Rgb([230, grey / 3, grey / 3]),
                Some(Block::Restless) => Rgb([grey, grey, grey / 3]),
                Some(Block::Same) | None => Rgb([grey; 3]),
            }
        })
    }
}

/// Compares a picture with its references, of which the first is complete. `again` is the first one, made once more.
pub(super) fn compare(
    picture: &RgbImage,
    references: &[Reference<'_>],
    again: Option<&RgbImage>,
    scale: u32,
) -> Comparison {
    let side = BLOCK * scale;
    let Some(Reference { image: first, .. }) = references.first() else {
        return Comparison { columns: 0, blocks: Vec::new(), side };
    };
    // Some tools make a picture of a whole page as wide as what reaches beyond the window, which a reader rarely sees.
    let width =
        if picture.width() > first.width() { first.width() } else { common(picture.width(), first.width(), scale) };
    let height = common(picture.height(), first.height(), scale);
    let (columns, rows) = (width.div_ceil(side), height.div_ceil(side));
    let restless = again.map(|again| restless_blocks(first, again, (width, height), side));
    let mut blocks = Vec::with_capacity((columns * rows) as usize);
    for row in 0..rows {
        for column in 0..columns {
            let (x, y) = (column * side, row * side);
            let (right, bottom) = ((x + side).min(width), (y + side).min(height));
            let matches = |reference: &Reference<'_>| {
                reference.from <= y && block_matches(picture, reference.image, [x, y, right, bottom])
            };
            let at = (row * columns + column) as usize;
            blocks.push(if restless.as_ref().is_some_and(|restless| restless[at]) {
                Block::Restless
            } else if references.iter().any(matches) {
                Block::Same
            } else {
                Block::Differs
            });
        }
    }
    Comparison { columns: columns as usize, blocks, side }
}

/// The blocks that differ between two references, and their neighbours.
fn restless_blocks(one: &RgbImage, two: &RgbImage, (width, height): (u32, u32), side: u32) -> Vec<bool> {
    let (columns, rows) = (width.div_ceil(side), height.div_ceil(side));
    let mut restless = vec![false; (columns * rows) as usize];
    for row in 0..rows {
        for column in 0..columns {
            let (x, y) = (column * side, row * side);
            // Below both, only the picture has a block, which nothing excuses.
            let is_below = y >= one.height() && y >= two.height();
            let (right, bottom) = ((x + side).min(width), (y + side).min(height));
            if is_below || block_matches(one, two, [x, y, right, bottom]) {
                continue;
            }
            for near_row in row.saturating_sub(1)..(row + 2).min(rows) {
                for near_column in column.saturating_sub(1)..(column + 2).min(columns) {
                    restless[(near_row * columns + near_column) as usize] = true;
                }
            }
        }
    }
    restless
}

/// A length of two pictures, where a few pixels do not count.
fn common(one: u32, two: u32, scale: u32) -> u32 {
    if one.abs_diff(two) < SAME_SIZE * scale { one.min(two) } else { one.max(two) }
}

/// Whether two images have the same block, from left and top to right and bottom, which may have moved by a pixel.
fn block_matches(one: &RgbImage, two: &RgbImage, block: [u32; 4]) -> bool {
    const MOVES: [(i64, i64); 9] = [(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (1, -1), (-1, 1), (-1, -1)];
    MOVES.into_iter().any(|moved| block_matches_at(one, two, block, moved))
}

fn block_matches_at(one: &RgbImage, two: &RgbImage, [x, y, right, bottom]: [u32; 4], moved: (i64, i64)) -> bool {
    let allowed = (right - x) * (bottom - y) / PIXELS_OF_A_BLOCK;
    let mut differing = 0;
    for row in y..bottom {
        for column in x..right {
            differing += u32::from(differs(one.get_pixel_checked(column, row), pixel_at(two, (column, row), moved)));
            if differing > allowed {
                return false;
            }
        }
    }
    true
}

/// The pixel that would be here if the image were moved. At its edges, the one that is here.
fn pixel_at(image: &RgbImage, (x, y): (u32, u32), (right, down): (i64, i64)) -> Option<&Rgb<u8>> {
    let from = |at: u32, by: i64| u32::try_from(i64::from(at) + by).ok();
    let moved = from(x, right).zip(from(y, down)).and_then(|(x, y)| image.get_pixel_checked(x, y));
    moved.or_else(|| image.get_pixel_checked(x, y))
}

fn differs(one: Option<&Rgb<u8>>, two: Option<&Rgb<u8>>) -> bool {
    match (one, two) {
        (Some(one), Some(two)) => one.0.iter().zip(two.0).any(|(one, two)| one.abs_diff(two) > TOLERANCE),
        (None, None) => false,
        (Some(_), None) | (None, Some(_)) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHITE: Rgb<u8> = Rgb([255; 3]);
    const BLACK: Rgb<u8> = Rgb([0; 3]);

    /// White, with black boxes: x, y, width, height.
    fn page(height: u32, boxes: &[[u32; 4]]) -> RgbImage {
        RgbImage::from_fn(400, height, |x, y| {
            let is_black = |[left, top, width, height]: &[u32; 4]| {
                (*left..left + width).contains(&x) && (*top..top + height).contains(&y)
            };
            if boxes.iter().any(is_black) { BLACK } else { WHITE }
        })
    }

    fn all(image: &RgbImage) -> Reference<'_> {
        Reference { image, from: 0 }
    }

    #[test]
    fn equal_and_slightly_moved_pictures_are_right() {
        let reference = page(300, &[[40, 40, 100, 100], [200, 20, 60, 3]]);
        for picture in
            [page(300, &[[40, 40, 100, 100], [200, 20, 60, 3]]), page(300, &[[41, 39, 100, 100], [201, 19, 60, 3]])]
        {
            let compared = compare(&picture, &[all(&reference)], Some(&reference), 1);
            assert_eq!((compared.count(Block::Differs), compared.is_right()), (0, true));
        }
        let faded =
            RgbImage::from_fn(400, 300, |x, y| Rgb(reference.get_pixel(x, y).0.map(|channel| channel.max(TOLERANCE))));
        assert!(compare(&faded, &[all(&reference)], None, 1).is_right());
    }

    #[test]
    fn missing_box_is_wrong_and_a_small_one_is_not() {
        let empty = page(300, &[]);
        let compared =
            compare(&empty, &[all(&page(300, &[[40, 80, 64, 64]]))], Some(&page(300, &[[40, 80, 64, 64]])), 1);
        assert_eq!((compared.count(Block::Differs), compared.is_right()), (64, false));
        assert_eq!(compared.first_difference(), Some(80));
        assert!((compared.ratio() - 64.0 / (50.0 * 38.0)).abs() < 1e-9);
        let small = page(300, &[[40, 80, 24, 24]]);
        assert!(compare(&empty, &[all(&small)], Some(&small), 1).is_right());
        // At three times the scale, blocks are three times as large.
        let large = page(300, &[[48, 96, 144, 144]]);
        assert_eq!(compare(&empty, &[all(&large)], Some(&large), 3).count(Block::Differs), 36);
    }

    #[test]
    fn heights_must_be_equal_and_pictures_not_narrower() {
        let reference = page(300, &[]);
        assert!(compare(&page(306, &[]), &[all(&reference)], Some(&reference), 1).is_right());
        let wider = RgbImage::from_pixel(500, 300, WHITE);
        assert!(compare(&wider, &[all(&reference)], Some(&reference), 1).is_right());
        assert!(!compare(&RgbImage::from_pixel(300, 300, WHITE), &[all(&reference)], Some(&reference), 1).is_right());
        for height in [240, 380] {
            let compared = compare(&page(height, &[]), &[all(&reference)], Some(&reference), 1);
            assert!(!compared.is_right(), "{height}");
        }
    }

    #[test]
    fn restless_blocks_are_left_out_with_their_neighbours() {
        let [one, two] = [[40, 80, 64, 64], [48, 80, 64, 64]].map(|moving| page(300, &[moving, [300, 200, 64, 64]]));
        let again = Some(&two);
        assert!(compare(&page(300, &[[300, 200, 64, 64], [44, 80, 64, 64]]), &[all(&one)], again, 1).is_right());
        assert!(!compare(&page(300, &[[40, 80, 64, 64]]), &[all(&one)], again, 1).is_right(), "a calm box is missing");
        let noise =
            |odd: u32| RgbImage::from_fn(400, 300, |x, y| if (x / 8 + y / 8) % 2 == odd { BLACK } else { WHITE });
        assert!(compare(&page(300, &[]), &[all(&noise(0))], Some(&noise(1)), 1).is_restless());
    }

    #[test]
    fn each_block_may_match_another_reference_below_its_first_row() {
        // A bar at the bottom of the window: in the first reference at the end of the first screen, in the other at the
        // end of the page.
        let (first, end) = (page(600, &[[0, 180, 400, 20]]), page(600, &[[0, 580, 400, 20]]));
        let references = [all(&first), Reference { image: &end, from: 100 }];
        assert!(compare(&end, &references, Some(&first), 1).is_right());
        assert!(!compare(&end, &references[..1], Some(&first), 1).is_right());
        // What is missing at the top is missing.
        let header = page(600, &[[0, 0, 400, 40]]);
        let references = [all(&header), Reference { image: &end, from: 100 }];
        assert!(!compare(&page(600, &[]), &references, Some(&header), 1).is_right());
    }

    #[test]
    fn drawing_shows_what_differs() {
        let (picture, reference) = (page(300, &[]), page(300, &[[40, 80, 64, 64]]));
        let drawn = compare(&picture, &[all(&reference)], None, 1).draw(&reference);
        assert_eq!(drawn.get_pixel(60, 100), &Rgb([230, 42, 42]));
        assert_eq!(drawn.get_pixel(10, 10), &WHITE);
    }
}
