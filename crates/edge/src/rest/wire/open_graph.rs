//! The Open Graph properties of a page.

use grabd_api::OpenGraph;
use grabd_proto::v1;

use super::borrowed;

/// Converts the properties.
pub(super) fn open_graph(properties: &v1::OpenGraph) -> OpenGraph<'_> {
    let v1::OpenGraph { title, description, image, site_name, r#type } = properties;
    OpenGraph {
        title: borrowed(title),
        description: borrowed(description),
        image: borrowed(image),
        site_name: borrowed(site_name),
        r#type: borrowed(r#type),
    }
}
