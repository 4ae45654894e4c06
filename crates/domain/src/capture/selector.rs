//! CSS selectors of the caller.

/// A CSS selector of the caller: not empty, limited in length, without NUL. Its syntax is checked by the browser.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Selector(pub(super) String);

impl Selector {
    /// The selector text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
