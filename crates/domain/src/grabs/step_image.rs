//! Images that steps took.

use serde::{Deserialize, Serialize};

use super::file::FileKey;

/// What is known of an image that a step took.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StepImage {
    /// The name that the step gives it.
    pub name: String,
    /// Width of the image in pixels.
    pub width: u32,
    /// Height of the image in pixels.
    pub height: u32,
}

/// An image of the page of a grab that a step took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrabStepImage {
    /// The key of its URL.
    pub key: FileKey,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its name, and its size in pixels.
    #[serde(flatten)]
    pub image: StepImage,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::Format;
    use crate::grabs::{RenderMetadata, ShownFile};

    #[test]
    fn images_of_steps_survive_their_stored_form_and_are_shown_with_their_names() {
        let image = |name: &str| StepImage { name: name.to_owned(), width: 780, height: 1688 };
        let stored = |number, name| GrabStepImage { key: FileKey::new(number), bytes: 6, image: image(name) };
        let metadata =
            RenderMetadata { step_images: vec![stored(1, "menu"), stored(2, "cart")], ..RenderMetadata::default() };
        let json = serde_json::to_string(&metadata).unwrap();
        assert_eq!(serde_json::from_str::<RenderMetadata>(&json).unwrap(), metadata);
        assert!(!serde_json::to_string(&RenderMetadata::default()).unwrap().contains("step_images"));
        let shown: Vec<_> = metadata.shown_files(Format::Webp).collect();
        assert_eq!(shown.iter().map(ShownFile::kind).collect::<Vec<_>>(), ["capture", "capture"]);
        let path = format!("f/{}/capture-2.webp", FileKey::new(2).as_str());
        assert_eq!((&shown[1].path, shown[1].media_type, shown[1].bytes), (&path, "image/webp", 6));
        assert_eq!((shown[1].step_image, shown[1].viewport), (Some(&image("cart")), None));
        assert_eq!((shown[1].width(), shown[1].height()), (Some(780), Some(1688)));
        assert!(metadata.has_files());
    }
}
