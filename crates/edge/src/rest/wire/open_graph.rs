//! JSON representation of the Open Graph properties of a page.

use grabd_proto::v1;
use serde::Serialize;
use utoipa::ToSchema;

/// How a page wants to be shown where somebody links to it: see https://ogp.me/. Texts come from the page: do not trust them.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct OpenGraph<'a> {
    /// `og:title`.
    #[schema(max_length = 300)]
    title: Option<&'a str>,
    /// `og:description`.
    #[schema(max_length = 1000)]
    description: Option<&'a str>,
    /// The http(s) URL of `og:image`.
    #[schema(max_length = 2048)]
    image: Option<&'a str>,
    /// `og:site_name`.
    #[schema(max_length = 300)]
    site_name: Option<&'a str>,
    /// `og:type`, such as `article`.
    #[schema(max_length = 64)]
    r#type: Option<&'a str>,
}

impl<'a> OpenGraph<'a> {
    pub(super) fn of(properties: &'a v1::OpenGraph) -> Self {
        let v1::OpenGraph { title, description, image, site_name, r#type } = properties;
        Self {
            title: title.as_deref(),
            description: description.as_deref(),
            image: image.as_deref(),
            site_name: site_name.as_deref(),
            r#type: r#type.as_deref(),
        }
    }
}
