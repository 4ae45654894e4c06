//! What changed between the image of an earlier grab and that of this one.

use serde::{Deserialize, Serialize};

use super::RenderMetadata;
use super::file::GrabFile;
use crate::capture::FileKind;
use crate::ids::GrabId;

/// The most regions of a difference.
pub const MAX_REGIONS: usize = 50;

/// What changed between the image of an earlier grab and that of this one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The earlier grab.
    pub compared_to: GrabId,
    /// The changed part of the new image, in millionths of its area. Not 0 if anything changed.
    pub changed_ppm: u32,
    /// Boxes around everything that changed, largest first. At most [`MAX_REGIONS`].
    pub regions: Vec<Region>,
}

/// A rectangle of the new image, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Region {
    /// The left edge.
    pub x: u32,
    /// The top edge.
    pub y: u32,
    /// The width.
    pub width: u32,
    /// The height.
    pub height: u32,
}

impl Difference {
    /// The changed part of the new image, from 0 to 1.
    pub fn ratio(&self) -> f64 {
        f64::from(self.changed_ppm) / 1e6
    }

    /// Whether anything changed.
    pub const fn has_changes(&self) -> bool {
        self.changed_ppm > 0
    }

    /// For people, such as `2.1 % changed in 3 regions`.
    pub fn summary(&self) -> String {
        let regions = match self.regions.len() {
            0 => return "nothing changed".to_owned(),
            1 => "1 region".to_owned(),
            count => format!("{count} regions"),
        };
        match self.changed_ppm {
            // Never rounded down to nothing.
            0..1000 => format!("less than 0.1 % changed in {regions}"),
            ppm => format!("{}.{} % changed in {regions}", ppm / 10_000, ppm % 10_000 / 1000),
        }
    }
}

impl RenderMetadata {
    /// The image that shows the difference. `None` without a comparison, and if nothing changed.
    pub fn difference_image(&self) -> Option<&GrabFile> {
        self.files.iter().find(|file| file.kind == FileKind::Difference)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn difference(changed_ppm: u32, regions: u32) -> Difference {
        let region = |x| Region { x, y: 0, width: 16, height: 16 };
        Difference { compared_to: GrabId(Uuid::nil()), changed_ppm, regions: (0..regions).map(region).collect() }
    }

    #[test]
    fn summary_rounds_down_but_never_to_nothing() {
        for (ppm, regions, expected) in [
            (0, 0, "nothing changed"),
            (1, 1, "less than 0.1 % changed in 1 region"),
            (1000, 1, "0.1 % changed in 1 region"),
            (21_999, 3, "2.1 % changed in 3 regions"),
            (1_000_000, 1, "100.0 % changed in 1 region"),
        ] {
            assert_eq!(difference(ppm, regions).summary(), expected);
        }
        assert!((difference(21_999, 3).ratio() - 0.021_999).abs() < f64::EPSILON);
    }

    #[test]
    fn difference_survives_its_stored_form_and_is_left_out_without_a_comparison() {
        let metadata = RenderMetadata { difference: Some(difference(7, 2)), ..RenderMetadata::default() };
        let stored = serde_json::to_string(&metadata).unwrap();
        assert_eq!(serde_json::from_str::<RenderMetadata>(&stored).unwrap(), metadata);
        assert!(!serde_json::to_string(&RenderMetadata::default()).unwrap().contains("difference"));
    }
}
