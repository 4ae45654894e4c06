//! The Open Graph properties of a page.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How a page wants to be shown where somebody links to it: see <https://ogp.me/>. Texts come from the page: do not trust
/// them.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(
    description = "How a page wants to be shown where somebody links to it: see https://ogp.me/. Texts come from the page: do not trust them."
)]
pub struct OpenGraph<'a> {
    /// `og:title`.
    #[schema(max_length = 300)]
    pub title: Option<Cow<'a, str>>,
    /// `og:description`.
    #[schema(max_length = 1000)]
    pub description: Option<Cow<'a, str>>,
    /// The http(s) URL of `og:image`.
    #[schema(max_length = 2048)]
    pub image: Option<Cow<'a, str>>,
    /// `og:site_name`.
    #[schema(max_length = 300)]
    pub site_name: Option<Cow<'a, str>>,
    /// `og:type`, such as `article`.
    #[schema(max_length = 64)]
    pub r#type: Option<Cow<'a, str>>,
}
