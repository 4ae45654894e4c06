//! How a PDF is laid out.

use grabd_options::{Object, Value};

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
}
