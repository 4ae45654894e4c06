//! Headers and footers of printed pages: lines of text with placeholders.

/// A part of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PagePart<'a> {
    /// Text of the caller.
    Text(&'a str),
    /// The number of the page.
    Page,
    /// The number of pages.
    Pages,
    /// The title of the document.
    Title,
    /// The URL of the document.
    Url,
    /// The day of the capture.
    Date,
}

/// The placeholders, with what they stand for.
const PLACEHOLDERS: [(&str, PagePart<'static>); 5] = [
    ("{page}", PagePart::Page),
    ("{pages}", PagePart::Pages),
    ("{title}", PagePart::Title),
    ("{url}", PagePart::Url),
    ("{date}", PagePart::Date),
];

/// A header or footer: text with placeholders. `|` separates what is on the left, in the middle and on the right.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PageText(String);

impl PageText {
    /// What is accepted, as the end of "must be …".
    pub(super) const ALLOWED: &str = "a text with at most two `|`, in which `{` only begins `{page}`, `{pages}`, \
                                      `{title}`, `{url}` and `{date}`";

    /// None if there are more than three sections, or an unknown placeholder.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let is_valid = text.split('|').count() <= 3 && text.split('|').all(|section| parts(section).is_some());
        is_valid.then(|| Self(text.to_owned()))
    }

    /// The text as the caller wrote it.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// What is on the left, in the middle and on the right. A text of one section is in the middle, and the second of two
    /// is on the right.
    pub fn sections(&self) -> [Vec<PagePart<'_>>; 3] {
        let sections: Vec<Vec<PagePart<'_>>> =
            self.0.split('|').map(|section| parts(section.trim()).unwrap_or_default()).collect();
        match sections.as_slice() {
            [middle] => [Vec::new(), middle.clone(), Vec::new()],
            [left, right] => [left.clone(), Vec::new(), right.clone()],
            [left, middle, right, ..] => [left.clone(), middle.clone(), right.clone()],
            [] => [Vec::new(), Vec::new(), Vec::new()],
        }
    }
}

/// The parts of a section. None if it has an unknown placeholder.
fn parts(section: &str) -> Option<Vec<PagePart<'_>>> {
    let mut parts = Vec::new();
    let mut rest = section;
    while let Some(start) = rest.find('{') {
        let (text, from) = rest.split_at(start);
        if !text.is_empty() {
            parts.push(PagePart::Text(text));
        }
        let (name, part) = PLACEHOLDERS.iter().find(|(name, _)| from.starts_with(name))?;
        parts.push(*part);
        rest = from.strip_prefix(name)?;
    }
    if !rest.is_empty() {
        parts.push(PagePart::Text(rest));
    }
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_split_into_sections_and_placeholders() {
        let sections = |text: &str| {
            let text = PageText::parse(text).unwrap();
            text.sections().map(|parts| parts.iter().map(|part| format!("{part:?}")).collect::<Vec<_>>().concat())
        };
        assert_eq!(sections("Page {page} of {pages}"), ["", "Text(\"Page \")PageText(\" of \")Pages", ""]);
        assert_eq!(sections(" {title} | {date}"), ["Title", "", "Date"]);
        assert_eq!(sections("a|{url}}|"), ["Text(\"a\")", "UrlText(\"}\")", ""]);
    }

    #[test]
    fn unknown_placeholders_and_further_sections_are_refused() {
        for text in ["{", "{page", "{Page}", "{total}", "{ page }", "{{page}}", "a|b|c|d"] {
            assert_eq!(PageText::parse(text), None, "{text}");
        }
    }
}
