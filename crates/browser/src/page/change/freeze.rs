//! Stops everything that moves before the image is taken.

use std::time::Duration;

use chromiumoxide::cdp::browser_protocol::page::GetResourceTreeParams;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cdp::CallError;
use crate::page::context::CaptureContext;
use crate::page::error::CaptureError;

/// The types of images that may be animated.
const ANIMATED_TYPES: [&str; 3] = ["image/gif", "image/webp", "image/apng"];

/// The most images that are stopped, and the most bytes of a URL.
const MAX_IMAGES: usize = 500;
const MAX_URL_BYTES: usize = 2048;

/// The time for the list of images.
const LIST_LIMIT: Duration = Duration::from_secs(2);

#[derive(Serialize)]
struct FreezeArguments<'a> {
    images: &'a [String],
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourceTree {
    frame_tree: FrameResources,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct FrameResources {
    resources: Vec<Resource>,
    child_frames: Vec<FrameResources>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    url: String,
    mime_type: String,
}

/// Stops animations, videos and animated images, and hides carets, if the caller requested it.
pub(in crate::page) async fn apply(context: &CaptureContext<'_>) -> Result<(), CaptureError> {
    if !context.spec.freeze {
        return Ok(());
    }
    let limit = LIST_LIMIT.min(context.remaining());
    let listed = context.tab.client.call_as(limit, Some(&context.tab.session), GetResourceTreeParams::default()).await;
    let tree: ResourceTree = match listed {
        // The document was replaced, which the caller notices by itself.
        Err(CallError::Refused { .. }) => return Ok(()),
        listed => listed?,
    };
    let images = animated_images(tree);
    let _fast = context.clock.draw_fast();
    let _: Option<Value> = context.call_script("freeze", &FreezeArguments { images: &images }).await?;
    Ok(())
}

fn animated_images(tree: ResourceTree) -> Vec<String> {
    let is_animated = |resource: &Resource| {
        ANIMATED_TYPES.contains(&resource.mime_type.as_str()) && resource.url.len() <= MAX_URL_BYTES
    };
    let (mut images, mut frames) = (Vec::new(), vec![tree.frame_tree]);
    while let Some(FrameResources { resources, child_frames }) = frames.pop() {
        images.extend(resources.into_iter().filter(is_animated).map(|resource| resource.url));
        frames.extend(child_frames);
    }
    images.truncate(MAX_IMAGES);
    images
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_images_that_may_be_animated_are_listed() {
        let resource = |url: &str, mime_type: &str| Resource { url: url.to_owned(), mime_type: mime_type.to_owned() };
        let resources = vec![
            resource("a", "image/gif"),
            resource("b", "image/png"),
            resource("c", "image/webp"),
            resource(&"d".repeat(MAX_URL_BYTES + 1), "image/gif"),
        ];
        let inner = FrameResources { resources: vec![resource("e", "image/apng")], ..FrameResources::default() };
        let tree = ResourceTree { frame_tree: FrameResources { resources, child_frames: vec![inner] } };
        assert_eq!(animated_images(tree), ["a", "c", "e"]);
        let resources = (0..=MAX_IMAGES).map(|_| resource("a", "image/gif")).collect();
        let tree = ResourceTree { frame_tree: FrameResources { resources, ..FrameResources::default() } };
        assert_eq!(animated_images(tree).len(), MAX_IMAGES);
    }
}
