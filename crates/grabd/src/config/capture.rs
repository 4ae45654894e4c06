//! Section `capture`.

use serde::Deserialize;

use super::Problems;

/// The largest image file that a full page of 1920 x 16384 pixels can have.
const MAX_IMAGE_MEGABYTES: u64 = 126;
/// More is a mistake rather than a need: a hundred images of the maximum size.
const MAX_MEMORY_MEGABYTES: u64 = 16_384;

/// Section `capture`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "default.toml says what each is")]
pub struct Capture {
    pub full_page_max_height_px: u32,
    pub image_max_megabytes: u64,
    pub image_memory_megabytes: u64,
}

impl Capture {
    pub(super) fn validate(&self, problems: &mut Problems) {
        let Self { full_page_max_height_px: height, image_max_megabytes: image, image_memory_megabytes: memory } =
            *self;
        if !(1080..=16_384).contains(&height) {
            problems.add("capture.full_page_max_height_px", &height.to_string(), "from 1080 to 16384");
        }
        if !(1..=MAX_IMAGE_MEGABYTES).contains(&image) {
            let allowed = format!("from 1 to {MAX_IMAGE_MEGABYTES}");
            problems.add("capture.image_max_megabytes", &image.to_string(), &allowed);
        } else if !(2 * image..=MAX_MEMORY_MEGABYTES).contains(&memory) {
            let allowed = format!("from {}, twice capture.image_max_megabytes, to {MAX_MEMORY_MEGABYTES}", 2 * image);
            problems.add("capture.image_memory_megabytes", &memory.to_string(), &allowed);
        }
    }
}
