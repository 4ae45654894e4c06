//! Positions of the numbers of marks: beside their boxes where there is room, and not above each other.

use crate::region::Region;

/// Columns and rows of a digit, in cells.
pub(super) const DIGIT: (u32, u32) = (5, 7);
/// Cells around the digits, and between two of them.
pub(super) const GAP: u32 = 1;

/// A number and its place.
pub(super) struct Label {
    pub(super) digits: Vec<u8>,
    pub(super) place: Region,
}

/// The labels of all boxes, numbered from 1. `cell` is the size of a cell in pixels.
pub(super) fn place(boxes: &[Region], (width, height): (u32, u32), cell: u32) -> Vec<Label> {
    let mut labels: Vec<Label> = Vec::with_capacity(boxes.len());
    for (at, marked) in boxes.iter().enumerate() {
        let digits: Vec<u8> = (at + 1).to_string().bytes().map(|digit| digit - b'0').collect();
        let columns = u32::try_from(digits.len()).unwrap_or(u32::MAX) * (DIGIT.0 + GAP) + GAP;
        let size = (columns * cell, (DIGIT.1 + 2 * GAP) * cell);
        let inside = |place: &Region| place.x + place.width <= width && place.y + place.height <= height;
        let is_free = |place: &Region| !labels.iter().any(|label| overlap(&label.place, place));
        let candidates: Vec<Region> = candidates(marked, size).into_iter().flatten().filter(inside).collect();
        // In a crowd, a number may cover another one. In an image that is smaller than a number, it is cut.
        let place = candidates.iter().find(|place| is_free(place)).or(candidates.first());
        let place = place.copied().unwrap_or(Region { x: marked.x, y: marked.y, width: size.0, height: size.1 });
        labels.push(Label { digits, place });
    }
    labels
}

/// Positions of a label, the best one first: above the box, in its corner, below and beside it.
fn candidates(marked: &Region, (width, height): (u32, u32)) -> [Option<Region>; 6] {
    let (right, bottom) = (marked.x + marked.width, marked.y + marked.height);
    let at = |x: Option<u32>, y: Option<u32>| Some(Region { x: x?, y: y?, width, height });
    [
        at(Some(marked.x), marked.y.checked_sub(height)),
        at(Some(marked.x), Some(marked.y)),
        at(right.checked_sub(width), marked.y.checked_sub(height)),
        at(Some(marked.x), Some(bottom)),
        at(Some(right), Some(marked.y)),
        at(marked.x.checked_sub(width), Some(marked.y)),
    ]
}

fn overlap(one: &Region, other: &Region) -> bool {
    one.x < other.x + other.width
        && other.x < one.x + one.width
        && one.y < other.y + other.height
        && other.y < one.y + one.height
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(boxes: &[Region], size: (u32, u32)) -> Vec<Region> {
        place(boxes, size, 2).into_iter().map(|label| label.place).collect()
    }

    #[test]
    fn numbers_are_above_their_boxes_and_in_them_at_the_top() {
        let (low, high) =
            (Region { x: 10, y: 50, width: 80, height: 20 }, Region { x: 10, y: 0, width: 80, height: 20 });
        let found = places(&[low, high], (200, 100));
        assert_eq!(
            found,
            [Region { x: 10, y: 32, width: 14, height: 18 }, Region { x: 10, y: 0, width: 14, height: 18 }]
        );
    }

    #[test]
    fn numbers_are_not_above_each_other_while_there_is_room() {
        let boxes = [Region { x: 40, y: 40, width: 30, height: 20 }; 6];
        let found = places(&boxes, (200, 200));
        for (at, one) in found.iter().enumerate() {
            assert!(found[at + 1..].iter().all(|other| !overlap(one, other)), "{found:?}");
        }
        // Then they are, but stay in the image.
        let found = places(&[Region { x: 180, y: 180, width: 20, height: 20 }; 20], (200, 200));
        assert!(found.iter().all(|place| place.x + place.width <= 200 && place.y + place.height <= 200), "{found:?}");
        assert_eq!(places(&[Region { x: 0, y: 0, width: 1, height: 1 }], (1, 1)).len(), 1);
    }

    #[test]
    fn numbers_begin_at_one() {
        let boxes = [Region { x: 0, y: 0, width: 9, height: 9 }; 12];
        let digits: Vec<Vec<u8>> = place(&boxes, (500, 500), 2).into_iter().map(|label| label.digits).collect();
        assert_eq!((&digits[0], &digits[11]), (&vec![1], &vec![1, 2]));
    }
}
