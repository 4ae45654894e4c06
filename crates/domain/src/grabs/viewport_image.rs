//! Images of a page in further viewports.

use serde::{Deserialize, Serialize};

use super::file::FileKey;

/// The sizes of an image in a further viewport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ViewportSize {
    /// Width of the viewport in CSS pixels.
    pub viewport_width: u32,
    /// Height of the viewport in CSS pixels.
    pub viewport_height: u32,
    /// Width of the image in pixels.
    pub width: u32,
    /// Height of the image in pixels.
    pub height: u32,
}

/// An image of the page of a grab in a further viewport.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrabViewport {
    /// The key of its URL.
    pub key: FileKey,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its size in pixels, and that of the viewport.
    #[serde(flatten)]
    pub size: ViewportSize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::Format;
    use crate::grabs::{GrabSlice, RenderMetadata, ShownFile, SlicePlace};

    #[test]
    fn images_of_viewports_survive_their_stored_form_and_are_shown_last() {
        let size = ViewportSize { viewport_width: 390, viewport_height: 844, width: 780, height: 1688 };
        let metadata = RenderMetadata {
            slices: vec![GrabSlice { key: FileKey::new(1), bytes: 5, place: SlicePlace::new(0, 256, None) }],
            viewports: vec![GrabViewport { key: FileKey::new(2), bytes: 6, size }],
            ..RenderMetadata::default()
        };
        let stored = serde_json::to_string(&metadata).unwrap();
        assert_eq!(serde_json::from_str::<RenderMetadata>(&stored).unwrap(), metadata);
        assert!(!serde_json::to_string(&RenderMetadata::default()).unwrap().contains("viewports"));
        let shown: Vec<_> = metadata.shown_files(Format::Webp).collect();
        assert_eq!(shown.iter().map(ShownFile::kind).collect::<Vec<_>>(), ["slice", "viewport"]);
        let path = format!("f/{}/viewport-1.webp", FileKey::new(2).as_str());
        assert_eq!((&shown[1].path, shown[1].media_type, shown[1].bytes), (&path, "image/webp", 6));
        assert_eq!((shown[0].viewport, shown[1].viewport), (None, Some(&size)));
    }
}
