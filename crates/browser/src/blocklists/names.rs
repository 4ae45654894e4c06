//! What decides which rules of a list can hide something in a page.

use serde::Deserialize;

/// Classes and ids in a page.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PageNames {
    pub(crate) classes: Vec<String>,
    pub(crate) ids: Vec<String>,
    /// Whether these are the first of their page.
    pub(crate) is_first: bool,
}
