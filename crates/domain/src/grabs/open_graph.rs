//! How a page wants to be shown where somebody links to it: the properties of <https://ogp.me/>.

use serde::{Deserialize, Serialize};

/// The Open Graph properties of a page. The page is not trusted: texts are limited and have no control characters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OpenGraph {
    /// `og:title`, at most 300 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// `og:description`, at most 1000 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The http(s) URL of `og:image`, at most 2048 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// `og:site_name`, at most 300 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site_name: Option<String>,
    /// `og:type`, such as `article`, at most 64 characters.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

impl OpenGraph {
    const TITLE_CHARS: usize = 300;
    const DESCRIPTION_CHARS: usize = 1000;
    const KIND_CHARS: usize = 64;

    /// Shortens texts that are too long, and leaves out a URL that is too long or not of the web. `None` if nothing is left.
    pub(super) fn bounded(self) -> Option<Self> {
        let bounded = Self {
            title: bounded_text(self.title, Self::TITLE_CHARS),
            description: bounded_text(self.description, Self::DESCRIPTION_CHARS),
            image: bounded_url(self.image),
            site_name: bounded_text(self.site_name, Self::TITLE_CHARS),
            kind: bounded_text(self.kind, Self::KIND_CHARS),
        };
        (bounded != Self::default()).then_some(bounded)
    }
}

/// A text of a page without control characters, shortened. `None` if nothing is left.
pub(super) fn bounded_text(text: Option<String>, most: usize) -> Option<String> {
    let text: String = text?.chars().filter(|c| !c.is_control()).take(most).collect();
    (!text.is_empty()).then_some(text)
}

/// A URL of a page, if it is of the web and not too long.
pub(super) fn bounded_url(url: Option<String>) -> Option<String> {
    url.filter(|url| {
        ["http://", "https://"].iter().any(|scheme| url.starts_with(scheme))
            && url.chars().count() <= URL_CHARS
            && !url.chars().any(char::is_control)
    })
}

/// The most characters of a URL.
pub(super) const URL_CHARS: usize = 2048;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_are_bounded_and_none_is_left_out() {
        let long = || Some("é\n".repeat(2000));
        let all = OpenGraph {
            title: long(),
            description: long(),
            image: Some("data:x".into()),
            site_name: long(),
            kind: long(),
        };
        let bounded = all.bounded().unwrap();
        let chars = |text: Option<String>| text.map_or(0, |text| text.chars().count());
        assert_eq!(
            [bounded.title, bounded.description, bounded.image, bounded.site_name, bounded.kind].map(chars),
            [300, 1000, 0, 300, 64]
        );
        let image = Some("https://example.com/card.png".to_owned());
        let only = OpenGraph { image, ..OpenGraph::default() };
        assert_eq!(only.clone().bounded(), Some(only));
        assert_eq!(OpenGraph { title: Some("\n".into()), ..OpenGraph::default() }.bounded(), None);
    }
}
