//! Documents and navigations of the main frame.

use crate::cdp::Head;

/// A committed document of the main frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Document {
    /// Identifies the document.
    pub(crate) loader: String,
    /// Its URL with the fragment.
    pub(crate) url: String,
    /// The URL that could not be reached, if this is the browser's own error page.
    pub(crate) unreachable_url: Option<String>,
    /// The browser's error code, if it could not be reached or broke off.
    pub(crate) error: Option<String>,
    /// The response head.
    pub(crate) head: Option<Head>,
}

/// A navigation of the main frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Navigation {
    pub(crate) loader: String,
    /// The current URL, after redirects.
    pub(crate) url: String,
    /// The browser's error code, if it failed.
    pub(crate) error: Option<String>,
    /// The response head, if one was received.
    pub(crate) head: Option<Head>,
}
