//! The slices of an image, and all attachments as the APIs show them.

use serde::{Deserialize, Serialize};

use super::file::FileKey;
use super::step_image::StepImage;
use super::viewport_image::ViewportSize;
use crate::capture::AttachmentName;

/// Where a slice is in its image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlicePlace {
    /// Its first row.
    pub y: u32,
    /// The number of its rows.
    pub height: u32,
    /// The text of the heading that its first row belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heading: Option<String>,
}

impl SlicePlace {
    /// The most characters of a heading.
    pub const HEADING_CHARS: usize = 200;

    /// Shortens a heading that is too long, and leaves out one without text: the page chose it.
    pub fn new(y: u32, height: u32, heading: Option<&str>) -> Self {
        let heading: Option<String> =
            heading.map(|text| text.chars().filter(|c| !c.is_control()).take(Self::HEADING_CHARS).collect());
        Self { y, height, heading: heading.filter(|text| !text.trim().is_empty()) }
    }
}

/// A slice of the image of a grab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrabSlice {
    /// The key of its URL.
    pub key: FileKey,
    /// Its size.
    pub bytes: u64,
    /// Where it is in the image.
    #[serde(flatten)]
    pub place: SlicePlace,
}

/// An attachment, as the APIs show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownFile<'a> {
    /// Which file it is.
    pub name: AttachmentName,
    /// The path of its URL, without a leading slash.
    pub path: String,
    /// Its media type.
    pub media_type: &'static str,
    /// Its size.
    pub bytes: u64,
    /// Where it is in the image, if it is a slice.
    pub place: Option<&'a SlicePlace>,
    /// Its sizes, if it is the image in a further viewport.
    pub viewport: Option<&'a ViewportSize>,
    /// Its name and size, if it is an image that a step took.
    pub step_image: Option<&'a StepImage>,
}

impl ShownFile<'_> {
    /// What it is, in the APIs.
    pub const fn kind(&self) -> &'static str {
        match self.name {
            AttachmentName::Also(kind) => kind.as_str(),
            AttachmentName::Slice(_) => AttachmentName::SLICE,
            AttachmentName::Viewport(_) => AttachmentName::VIEWPORT,
            AttachmentName::Step(_) => AttachmentName::STEP,
        }
    }

    /// The pixels in a row of an image in a further viewport, or of one that a step took.
    pub fn width(&self) -> Option<u32> {
        self.viewport.map(|size| size.width).or(self.step_image.map(|image| image.width))
    }

    /// The number of rows of a slice, or of such an image.
    pub fn height(&self) -> Option<u32> {
        let of_image = self.viewport.map(|size| size.height).or(self.step_image.map(|image| image.height));
        self.place.map(|place| place.height).or(of_image)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::{FileKind, Format};
    use crate::grabs::{GrabFile, RenderMetadata};

    #[test]
    fn headings_are_shortened_and_have_no_control_characters() {
        let heading = |text: &str| SlicePlace::new(0, 1, Some(text)).heading;
        assert_eq!(heading("Prices\n\u{7}"), Some("Prices".to_owned()));
        assert_eq!(heading(&"é".repeat(300)), Some("é".repeat(200)));
        assert_eq!((heading(""), heading(" \n"), SlicePlace::new(0, 1, None).heading), (None, None, None));
    }

    #[test]
    fn slices_survive_their_stored_form_and_are_shown_after_the_files() {
        let slice = |number: u128, y, heading| GrabSlice {
            key: FileKey::new(number),
            bytes: 5,
            place: SlicePlace::new(y, 256, heading),
        };
        let metadata = RenderMetadata {
            files: vec![GrabFile { kind: FileKind::Text, key: FileKey::new(1), bytes: 4 }],
            slices: vec![slice(2, 0, None), slice(3, 256, Some("Prices"))],
            ..RenderMetadata::default()
        };
        let stored = serde_json::to_string(&metadata).unwrap();
        assert_eq!(serde_json::from_str::<RenderMetadata>(&stored).unwrap(), metadata);
        assert!(!serde_json::to_string(&RenderMetadata::default()).unwrap().contains("slices"));
        let shown: Vec<_> = metadata.shown_files(Format::Jpeg).collect();
        assert_eq!(shown.iter().map(ShownFile::kind).collect::<Vec<_>>(), ["text", "slice", "slice"]);
        let path = format!("f/{}/slice-02.jpeg", FileKey::new(3).as_str());
        assert_eq!((&shown[2].path, shown[2].media_type), (&path, "image/jpeg"));
        assert_eq!(shown[2].place.map(|place| (place.y, place.heading.as_deref())), Some((256, Some("Prices"))));
        assert_eq!(shown[0].place, None);
    }
}
