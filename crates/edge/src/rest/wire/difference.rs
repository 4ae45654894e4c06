//! What changed since an earlier image.

use grabd_api::{Difference, Region};
use grabd_proto::v1;

use super::shown_url::shown_url;

/// Converts what changed between two images.
pub(super) fn difference(difference: &v1::Difference, is_live: bool) -> Difference<'_> {
    let v1::Difference { compared_to, ratio, regions, image_url } = difference;
    let region =
        |v1::Region { x, y, width, height }: &v1::Region| Region { x: *x, y: *y, width: *width, height: *height };
    Difference {
        compared_to: compared_to.into(),
        ratio: *ratio,
        regions: regions.iter().map(region).collect(),
        image_url: image_url.as_deref().map(|url| shown_url(url, is_live).into()),
    }
}
