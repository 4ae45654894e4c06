//! Attachments: files that are made beside the image.

/// What an attachment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileKind {
    /// The document as HTML.
    Html,
    /// The visible text.
    Text,
    /// The content as Markdown.
    Markdown,
    /// The links, as JSON.
    Links,
    /// The elements that a user can operate, with their boxes in the image, as JSON.
    Elements,
    /// What screen readers read of the page: roles, names and states, as YAML.
    Accessibility,
    /// A copy of the image with numbered marks on the elements, as PNG. Made by the core.
    Marks,
    /// The page with what it shows, as MHTML.
    Mhtml,
    /// The page as PDF.
    Pdf,
    /// What happened during the capture, as JSON.
    Report,
    /// The requests of the page, as HTTP Archive.
    Har,
    /// What changed since an earlier image, as PNG. Made by the core because of `compare_to`, not of `also`.
    Difference,
    /// A smaller copy of the image, as JPEG. Made by the core because of `thumbnail`, not of `also`.
    Thumbnail,
    /// The signed package about the capture, as zip. Made by the core because of `evidence`, not of `also`.
    Evidence,
}

const MEBIBYTE: u64 = 1 << 20;

impl FileKind {
    /// All kinds, in the order in which files are made, stored and shown.
    /// A PDF changes the layout of the page, so that what depends on it is read before.
    pub const ALL: [Self; 14] = [
        Self::Html,
        Self::Text,
        Self::Markdown,
        Self::Links,
        Self::Elements,
        Self::Accessibility,
        Self::Marks,
        Self::Mhtml,
        Self::Pdf,
        Self::Report,
        Self::Har,
        Self::Difference,
        Self::Thumbnail,
        Self::Evidence,
    ];

    /// Its name in the APIs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Text => "text",
            Self::Markdown => "markdown",
            Self::Links => "links",
            Self::Elements => "elements",
            Self::Accessibility => "accessibility",
            Self::Marks => "marks",
            Self::Mhtml => "mhtml",
            Self::Pdf => "pdf",
            Self::Report => "report",
            Self::Har => "har",
            Self::Difference => "difference",
            Self::Thumbnail => "thumbnail",
            Self::Evidence => "evidence",
        }
    }

    /// Parses the name in the APIs.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// The last part of its URL, and the name under which it is saved.
    pub const fn file_name(self) -> &'static str {
        match self {
            Self::Html => "page.html",
            Self::Text => "page.txt",
            Self::Markdown => "page.md",
            Self::Links => "links.json",
            Self::Elements => "elements.json",
            Self::Accessibility => "accessibility.yaml",
            Self::Marks => "marks.png",
            Self::Mhtml => "page.mhtml",
            Self::Pdf => "page.pdf",
            Self::Report => "report.json",
            Self::Har => "page.har",
            Self::Difference => "difference.png",
            Self::Thumbnail => "thumbnail.jpeg",
            Self::Evidence => "evidence.zip",
        }
    }

    /// Its media type.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Html => "text/html; charset=utf-8",
            Self::Text => "text/plain; charset=utf-8",
            Self::Accessibility => "application/yaml",
            Self::Markdown => "text/markdown; charset=utf-8",
            Self::Links | Self::Elements | Self::Report | Self::Har => "application/json",
            // A message with its header (RFC 2557).
            Self::Mhtml => "message/rfc822",
            Self::Pdf => "application/pdf",
            Self::Marks | Self::Difference => "image/png",
            Self::Thumbnail => "image/jpeg",
            Self::Evidence => "application/zip",
        }
    }

    /// The most bytes of a file. Longer texts are cut, and the capture fails if another file would be larger.
    pub const fn max_bytes(self) -> u64 {
        match self {
            // Those in JSON are bounded by the number and length of their entries.
            Self::Html | Self::Links | Self::Elements | Self::Report | Self::Har => 8 * MEBIBYTE,
            Self::Text | Self::Markdown => 2 * MEBIBYTE,
            Self::Mhtml => 16 * MEBIBYTE,
            // More than its pixels have.
            Self::Thumbnail => 4 * MEBIBYTE,
            Self::Pdf | Self::Marks | Self::Difference => 32 * MEBIBYTE,
            // Its characters are bounded.
            Self::Accessibility => 4 * MEBIBYTE,
            // The largest image that an operator can allow, and the other files in the package.
            Self::Evidence => 160 * MEBIBYTE,
        }
    }

    /// Whether it is made of the page by a renderer. Other files are made by the core, of the stored image.
    pub const fn is_of_page(self) -> bool {
        !matches!(self, Self::Marks | Self::Difference | Self::Thumbnail | Self::Evidence)
    }
}

/// Which part of a page its text and Markdown are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Content {
    /// The article, or all of a page that has none.
    #[default]
    Main,
    /// All of it.
    Page,
}

impl Content {
    const ALL: [Self; 2] = [Self::Main, Self::Page];

    /// Its name in the APIs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Page => "page",
        }
    }

    /// Parses the name in the APIs.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|content| content.as_str() == name)
    }
}

/// The kinds with these names, in their order and each once. Marks have the numbers of the list of elements, so that is
/// made too. None if a name is not known, or cannot be asked for.
pub(super) fn kinds(names: &[String]) -> Option<Vec<FileKind>> {
    let is_asked_otherwise =
        |kind: FileKind| matches!(kind, FileKind::Difference | FileKind::Thumbnail | FileKind::Evidence);
    let asked = |name: &String| FileKind::parse(name).filter(|kind| !is_asked_otherwise(*kind));
    let mut kinds: Vec<FileKind> = names.iter().map(asked).collect::<Option<_>>()?;
    if kinds.contains(&FileKind::Marks) {
        kinds.push(FileKind::Elements);
    }
    kinds.sort_unstable();
    kinds.dedup();
    Some(kinds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_ordered_and_named_once() {
        let names = ["pdf", "html", "pdf"].map(str::to_owned);
        assert_eq!(kinds(&names), Some(vec![FileKind::Html, FileKind::Pdf]));
        assert_eq!(kinds(&["marks".to_owned()]), Some(vec![FileKind::Elements, FileKind::Marks]));
        assert_eq!(kinds(&["warc".to_owned()]), None);
        assert_eq!(kinds(&["difference".to_owned()]), None);
        assert_eq!(kinds(&["thumbnail".to_owned()]), None);
        assert_eq!(kinds(&["evidence".to_owned()]), None);
    }
}
