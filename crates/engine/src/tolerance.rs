//! What does not count in a comparison of images, in pixels of the later one.

use grabd_domain::capture::{CaptureSpec, Rectangle};
use grabd_pixels::{Region, Tolerance};

/// What does not count when the image of this spec is compared with an earlier one.
pub(crate) fn of(spec: &CaptureSpec) -> Tolerance {
    let hundredths = u64::from(spec.scale.hundredths());
    Tolerance {
        ignored: spec.tolerance.ignored.iter().map(|area| in_pixels(*area, hundredths)).collect(),
        min_region_px: spec.tolerance.min_region_px,
    }
}

/// A rectangle in image pixels, of which there are this many hundredths per CSS pixel. It is rounded outwards.
fn in_pixels(Rectangle { x, y, width, height }: Rectangle, hundredths: u64) -> Region {
    let scaled = |css: i64| u64::try_from(css).unwrap_or(0).saturating_mul(hundredths);
    let side = |start: i64, length: i64| {
        let (first, end) = (scaled(start) / 100, scaled(start.saturating_add(length)).div_ceil(100));
        let pixels = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        (pixels(first), pixels(end.saturating_sub(first)))
    };
    let ((x, width), (y, height)) = (side(x, width), side(y, height));
    Region { x, y, width, height }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rectangles_are_scaled_and_rounded_outwards() {
        let area = Rectangle { x: 3, y: 10, width: 5, height: 7 };
        for (hundredths, expected) in [
            (100, Region { x: 3, y: 10, width: 5, height: 7 }),
            (200, Region { x: 6, y: 20, width: 10, height: 14 }),
            (150, Region { x: 4, y: 15, width: 8, height: 11 }),
        ] {
            assert_eq!(in_pixels(area, hundredths), expected, "{hundredths}");
        }
    }
}
