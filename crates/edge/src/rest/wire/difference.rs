//! JSON representation of what changed since an earlier image.

use grabd_proto::v1;
use serde::Serialize;
use utoipa::ToSchema;

use super::shown_url::shown_url;

/// What changed between the image of an earlier grab and that of this one.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Difference<'a> {
    /// Id of the earlier grab.
    #[schema(format = "uuid")]
    compared_to: &'a str,
    /// The changed part of the image. Not 0 if anything changed.
    #[schema(minimum = 0, maximum = 1)]
    ratio: f64,
    /// Boxes around everything that changed, largest first.
    #[schema(inline, max_items = 50)]
    regions: Vec<Region>,
    /// Public, unguessable URL of the image with the regions outlined, a PNG; for test keys a path relative to the API's
    /// origin. Absent if nothing changed, and after the image was deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = "uri-reference", nullable = false)]
    image_url: Option<&'a str>,
}

/// A rectangle of the image, in pixels.
#[derive(Debug, Serialize, ToSchema)]
struct Region {
    /// The left edge.
    #[schema(minimum = 0)]
    x: i32,
    /// The top edge.
    #[schema(minimum = 0)]
    y: i32,
    /// The width.
    #[schema(minimum = 1)]
    width: i32,
    /// The height.
    #[schema(minimum = 1)]
    height: i32,
}

impl<'a> Difference<'a> {
    pub(super) fn of(difference: &'a v1::Difference, is_live: bool) -> Self {
        let v1::Difference { compared_to, ratio, regions, image_url } = difference;
        let region =
            |v1::Region { x, y, width, height }: &v1::Region| Region { x: *x, y: *y, width: *width, height: *height };
        let regions = regions.iter().map(region).collect();
        Self { compared_to, ratio: *ratio, regions, image_url: image_url.as_deref().map(|url| shown_url(url, is_live)) }
    }
}
