//! Attachments: files that are made beside the image.

use grabd_options::{Object, Value};

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
    /// A copy of the image with numbered marks on the elements, as PNG. Made by the core.
    Marks,
    /// The page as PDF.
    Pdf,
    /// What happened during the capture, as JSON.
    Report,
    /// What changed since an earlier image, as PNG. Made by the core because of `compare_to`, not of `also`.
    Difference,
    /// A smaller copy of the image, as JPEG. Made by the core because of `thumbnail`, not of `also`.
    Thumbnail,
}

const MEBIBYTE: u64 = 1 << 20;

impl FileKind {
    /// All kinds, in the order in which files are made, stored and shown.
    /// A PDF changes the layout of the page, so that what depends on it is read before.
    pub const ALL: [Self; 10] = [
        Self::Html,
        Self::Text,
        Self::Markdown,
        Self::Links,
        Self::Elements,
        Self::Marks,
        Self::Pdf,
        Self::Report,
        Self::Difference,
        Self::Thumbnail,
    ];

    /// Its name in the APIs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Text => "text",
            Self::Markdown => "markdown",
            Self::Links => "links",
            Self::Elements => "elements",
            Self::Marks => "marks",
            Self::Pdf => "pdf",
            Self::Report => "report",
            Self::Difference => "difference",
            Self::Thumbnail => "thumbnail",
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
            Self::Marks => "marks.png",
            Self::Pdf => "page.pdf",
            Self::Report => "report.json",
            Self::Difference => "difference.png",
            Self::Thumbnail => "thumbnail.jpeg",
        }
    }

    /// Its media type.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Html => "text/html; charset=utf-8",
            Self::Text => "text/plain; charset=utf-8",
            Self::Markdown => "text/markdown; charset=utf-8",
            Self::Links | Self::Elements | Self::Report => "application/json",
            Self::Pdf => "application/pdf",
            Self::Marks | Self::Difference => "image/png",
            Self::Thumbnail => "image/jpeg",
        }
    }

    /// The most bytes of a file. Longer texts are cut, and the capture fails if another file would be larger.
    pub const fn max_bytes(self) -> u64 {
        match self {
            // Those in JSON are bounded by the number and length of their entries.
            Self::Html | Self::Links | Self::Elements | Self::Report => 8 * MEBIBYTE,
            Self::Text | Self::Markdown => 2 * MEBIBYTE,
            // More than its pixels have.
            Self::Thumbnail => 4 * MEBIBYTE,
            Self::Pdf | Self::Marks | Self::Difference => 32 * MEBIBYTE,
        }
    }

    /// Whether it is made of the page by a renderer. Other files are made by the core, of the stored image.
    pub const fn is_of_page(self) -> bool {
        !matches!(self, Self::Marks | Self::Difference | Self::Thumbnail)
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

/// Paper sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are those of the standards")]
pub enum Paper {
    A3,
    #[default]
    A4,
    A5,
    Letter,
    Legal,
    Tabloid,
}

impl Paper {
    const ALL: [Self; 6] = [Self::A3, Self::A4, Self::A5, Self::Letter, Self::Legal, Self::Tabloid];

    /// Its name in the APIs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::A3 => "a3",
            Self::A4 => "a4",
            Self::A5 => "a5",
            Self::Letter => "letter",
            Self::Legal => "legal",
            Self::Tabloid => "tabloid",
        }
    }

    /// Width and height in inches.
    pub const fn inches(self) -> (f64, f64) {
        match self {
            Self::A3 => (11.693, 16.535),
            Self::A4 => (8.268, 11.693),
            Self::A5 => (5.827, 8.268),
            Self::Letter => (8.5, 11.0),
            Self::Legal => (8.5, 14.0),
            Self::Tabloid => (11.0, 17.0),
        }
    }
}

/// How a PDF is laid out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PdfLayout {
    /// The paper.
    pub paper: Paper,
    /// Whether the paper is turned by 90 degrees.
    pub landscape: bool,
    /// Whether there is one page only, as high as the content.
    pub single_page: bool,
    /// Whether backgrounds are printed.
    pub background: bool,
    /// Margin on all sides in millimetres.
    pub margin_mm: u8,
    /// The pages that are printed. None: all.
    pub pages: Option<String>,
}

impl Default for PdfLayout {
    fn default() -> Self {
        Self {
            paper: Paper::default(),
            landscape: false,
            single_page: false,
            background: true,
            margin_mm: 10,
            pages: None,
        }
    }
}

impl PdfLayout {
    /// None if a member is not known or impossible.
    pub(super) fn of(object: &Object) -> Option<Self> {
        let mut layout = Self::default();
        for (name, value) in object {
            match (name.as_str(), value) {
                ("format", Value::Text(name)) => {
                    layout.paper = Paper::ALL.into_iter().find(|paper| paper.as_str() == name)?;
                }
                ("landscape", Value::Flag(landscape)) => layout.landscape = *landscape,
                ("single_page", Value::Flag(single_page)) => layout.single_page = *single_page,
                ("background", Value::Flag(background)) => layout.background = *background,
                ("margin_mm", Value::Integer(margin_mm)) => layout.margin_mm = u8::try_from(*margin_mm).ok()?,
                ("pages", Value::Text(pages)) => layout.pages = Some(pages.clone()),
                (_, _) => return None,
            }
        }
        Some(layout)
    }

    /// The members that differ from their defaults.
    pub(super) fn to_object(&self) -> Object {
        let Self { paper, landscape, single_page, background, margin_mm, pages } = self;
        let default = Self::default();
        let members = [
            ("format", (*paper != default.paper).then(|| Value::Text(paper.as_str().to_owned()))),
            ("landscape", landscape.then_some(Value::Flag(true))),
            ("single_page", single_page.then_some(Value::Flag(true))),
            ("background", (!background).then_some(Value::Flag(false))),
            ("margin_mm", (*margin_mm != default.margin_mm).then(|| Value::Integer((*margin_mm).into()))),
            ("pages", pages.clone().map(Value::Text)),
        ];
        members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }
}

/// The kinds with these names, in their order and each once. Marks have the numbers of the list of elements, so that is
/// made too. None if a name is not known, or cannot be asked for.
pub(super) fn kinds(names: &[String]) -> Option<Vec<FileKind>> {
    let is_asked_otherwise = |kind: FileKind| matches!(kind, FileKind::Difference | FileKind::Thumbnail);
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
    fn layout_of_a_pdf_survives_its_object_and_omits_defaults() {
        assert_eq!(PdfLayout::default().to_object(), Object::new());
        let layout = PdfLayout {
            paper: Paper::Legal,
            landscape: true,
            single_page: true,
            background: false,
            margin_mm: 0,
            pages: Some("1-2".to_owned()),
        };
        assert_eq!(PdfLayout::of(&layout.to_object()), Some(layout));
        let unknown = [("paper".to_owned(), Value::Flag(true))].into();
        assert_eq!(PdfLayout::of(&unknown), None);
    }

    #[test]
    fn kinds_are_ordered_and_named_once() {
        let names = ["pdf", "html", "pdf"].map(str::to_owned);
        assert_eq!(kinds(&names), Some(vec![FileKind::Html, FileKind::Pdf]));
        assert_eq!(kinds(&["marks".to_owned()]), Some(vec![FileKind::Elements, FileKind::Marks]));
        assert_eq!(kinds(&["mhtml".to_owned()]), None);
        assert_eq!(kinds(&["difference".to_owned()]), None);
        assert_eq!(kinds(&["thumbnail".to_owned()]), None);
    }
}
