//! What changed since an earlier image.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What changed between the image of an earlier grab and that of this one.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Difference<'a> {
    /// Id of the earlier grab.
    #[schema(format = "uuid")]
    pub compared_to: Cow<'a, str>,
    /// The changed part of the image. Not 0 if anything changed.
    #[schema(minimum = 0, maximum = 1)]
    pub ratio: f64,
    /// Boxes around everything that changed, largest first.
    #[schema(inline, max_items = 50)]
    pub regions: Vec<Region>,
    /// Public, unguessable URL of the image with the regions outlined, a PNG; for test keys a path relative to the API's
    /// origin. Absent if nothing changed, and after the image was deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = "uri-reference", nullable = false)]
    pub image_url: Option<Cow<'a, str>>,
}

/// A rectangle of the image, in pixels.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
pub struct Region {
    /// The left edge.
    #[schema(minimum = 0)]
    pub x: i32,
    /// The top edge.
    #[schema(minimum = 0)]
    pub y: i32,
    /// The width.
    #[schema(minimum = 1)]
    pub width: i32,
    /// The height.
    #[schema(minimum = 1)]
    pub height: i32,
}
