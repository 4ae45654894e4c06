//! How a PDF is laid out.

use grabd_options::{Object, Value};

use super::page_text::PageText;
use crate::faults::Field;

/// The smallest margin that a header or a footer fits into. The browser leaves 15 points at the edge of the paper.
const TEXT_MARGIN: Length = Length::of_mm(10);

/// What headers and footers need, as the end of "must be …".
const TOP_MARGIN: &str = "used with a margin of at least 10 mm at the top";
const BOTTOM_MARGIN: &str = "used with a margin of at least 10 mm at the bottom";

/// The smallest part of the paper that margins leave.
const LEAST_AREA: Length = Length::of_mm(10);

const MILLIMETRES_PER_INCH: f64 = 25.4;

/// A length on paper, in micrometres.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Length(u32);

impl Length {
    const fn of_mm(millimetres: u32) -> Self {
        Self(millimetres * 1000)
    }

    /// A number of millimetres, rounded to a micrometre. None if it is not from 0 to 10 metres.
    fn read(value: &Value) -> Option<Self> {
        let micrometres = (value.as_f64()? * 1000.0).round();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
        (0.0..=10_000_000.0).contains(&micrometres).then_some(Self(micrometres as u32))
    }

    fn to_value(self) -> Value {
        Value::Number(self.millimetres())
    }

    fn millimetres(self) -> f64 {
        f64::from(self.0) / 1000.0
    }

    /// The length in inches.
    pub fn inches(self) -> f64 {
        self.millimetres() / MILLIMETRES_PER_INCH
    }
}

/// A factor in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PrintScale(u16);

impl PrintScale {
    /// A factor, rounded to three decimals. None if it is not from 0.1 to 2.
    fn read(value: &Value) -> Option<Self> {
        let thousandths = (value.as_f64()? * 1000.0).round();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
        (100.0..=2000.0).contains(&thousandths).then_some(Self(thousandths as u16))
    }

    /// The factor.
    pub fn factor(self) -> f64 {
        f64::from(self.0) / 1000.0
    }
}

impl Default for PrintScale {
    fn default() -> Self {
        Self(1000)
    }
}

/// Paper sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are those of the standards")]
pub enum Paper {
    A0,
    A1,
    A2,
    A3,
    #[default]
    A4,
    A5,
    A6,
    Letter,
    Legal,
    Tabloid,
    Ledger,
}

impl Paper {
    const ALL: [Self; 11] = [
        Self::A0,
        Self::A1,
        Self::A2,
        Self::A3,
        Self::A4,
        Self::A5,
        Self::A6,
        Self::Letter,
        Self::Legal,
        Self::Tabloid,
        Self::Ledger,
    ];

    /// Its name in the APIs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::A0 => "a0",
            Self::A1 => "a1",
            Self::A2 => "a2",
            Self::A3 => "a3",
            Self::A4 => "a4",
            Self::A5 => "a5",
            Self::A6 => "a6",
            Self::Letter => "letter",
            Self::Legal => "legal",
            Self::Tabloid => "tabloid",
            Self::Ledger => "ledger",
        }
    }

    /// Width and height in inches.
    pub const fn inches(self) -> (f64, f64) {
        match self {
            Self::A0 => (33.110, 46.811),
            Self::A1 => (23.386, 33.110),
            Self::A2 => (16.535, 23.386),
            Self::A3 => (11.693, 16.535),
            Self::A4 => (8.268, 11.693),
            Self::A5 => (5.827, 8.268),
            Self::A6 => (4.134, 5.827),
            Self::Letter => (8.5, 11.0),
            Self::Legal => (8.5, 14.0),
            Self::Tabloid => (11.0, 17.0),
            Self::Ledger => (17.0, 11.0),
        }
    }
}

/// Margins, each of which replaces the common one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Margins<T> {
    /// At the top.
    pub top: T,
    /// On the right.
    pub right: T,
    /// At the bottom.
    pub bottom: T,
    /// On the left.
    pub left: T,
}

/// How a PDF is laid out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PdfLayout {
    /// The paper.
    pub paper: Paper,
    /// The width of the paper, which replaces that of [`Self::paper`].
    pub width: Option<Length>,
    /// The height of the paper. It is not known for a single page.
    pub height: Option<Length>,
    /// Whether the paper is turned by 90 degrees.
    pub landscape: bool,
    /// Whether there is one page only, as high as the content.
    pub single_page: bool,
    /// Whether backgrounds are printed.
    pub background: bool,
    /// Margin on all sides in millimetres.
    pub margin_mm: u8,
    /// Margins of single sides.
    pub sides: Margins<Option<Length>>,
    /// How much larger the content is than on the screen.
    pub scale: PrintScale,
    /// A line in the top margin of each page.
    pub header: Option<PageText>,
    /// A line in the bottom margin of each page.
    pub footer: Option<PageText>,
    /// The pages that are printed. None: all.
    pub pages: Option<String>,
    /// Whether the size of the pages is that of the style sheets, if they have one.
    pub css_page_size: bool,
    /// Whether the structure of the document is in the PDF, for screen readers.
    pub tagged: bool,
    /// Whether the headings are bookmarks.
    pub outline: bool,
    /// The line in the top margin of the first page, which replaces [`Self::header`] there. It may be empty.
    pub first_page_header: Option<PageText>,
    /// The line in the bottom margin of the first page, which replaces [`Self::footer`] there. It may be empty.
    pub first_page_footer: Option<PageText>,
}

impl Default for PdfLayout {
    fn default() -> Self {
        Self {
            paper: Paper::default(),
            width: None,
            height: None,
            landscape: false,
            single_page: false,
            background: true,
            margin_mm: 10,
            sides: Margins::default(),
            scale: PrintScale::default(),
            header: None,
            footer: None,
            pages: None,
            css_page_size: false,
            tagged: true,
            outline: false,
            first_page_header: None,
            first_page_footer: None,
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
                ("width_mm", width) => layout.width = Some(Length::read(width)?),
                ("height_mm", height) => layout.height = Some(Length::read(height)?),
                ("landscape", Value::Flag(landscape)) => layout.landscape = *landscape,
                ("single_page", Value::Flag(single_page)) => layout.single_page = *single_page,
                ("background", Value::Flag(background)) => layout.background = *background,
                ("margin_mm", Value::Integer(margin_mm)) => layout.margin_mm = u8::try_from(*margin_mm).ok()?,
                ("margin_top_mm", margin) => layout.sides.top = Some(Length::read(margin)?),
                ("margin_right_mm", margin) => layout.sides.right = Some(Length::read(margin)?),
                ("margin_bottom_mm", margin) => layout.sides.bottom = Some(Length::read(margin)?),
                ("margin_left_mm", margin) => layout.sides.left = Some(Length::read(margin)?),
                ("scale", scale) => layout.scale = PrintScale::read(scale)?,
                ("header", Value::Text(text)) => layout.header = Some(PageText::parse(text)?),
                ("footer", Value::Text(text)) => layout.footer = Some(PageText::parse(text)?),
                ("pages", Value::Text(pages)) => layout.pages = Some(pages.clone()),
                ("css_page_size", Value::Flag(css_page_size)) => layout.css_page_size = *css_page_size,
                ("tagged", Value::Flag(tagged)) => layout.tagged = *tagged,
                ("outline", Value::Flag(outline)) => layout.outline = *outline,
                ("first_page_header", Value::Text(text)) => layout.first_page_header = Some(PageText::parse(text)?),
                ("first_page_footer", Value::Text(text)) => layout.first_page_footer = Some(PageText::parse(text)?),
                (_, _) => return None,
            }
        }
        Some(layout)
    }

    /// The members that differ from their defaults.
    pub(super) fn to_object(&self) -> Object {
        let Self { paper, width, height, landscape, single_page, background, margin_mm, sides, .. } = self;
        let Self { scale, header, footer, pages, css_page_size, tagged, outline, .. } = self;
        let Self { first_page_header, first_page_footer, .. } = self;
        let default = Self::default();
        let length = |length: &Option<Length>| length.map(Length::to_value);
        let text = |text: &Option<PageText>| text.as_ref().map(|text| Value::Text(text.as_str().to_owned()));
        let members = [
            ("format", (*paper != default.paper).then(|| Value::Text(paper.as_str().to_owned()))),
            ("width_mm", length(width)),
            ("height_mm", length(height)),
            ("landscape", landscape.then_some(Value::Flag(true))),
            ("single_page", single_page.then_some(Value::Flag(true))),
            ("background", (!background).then_some(Value::Flag(false))),
            ("margin_mm", (*margin_mm != default.margin_mm).then(|| Value::Integer((*margin_mm).into()))),
            ("margin_top_mm", length(&sides.top)),
            ("margin_right_mm", length(&sides.right)),
            ("margin_bottom_mm", length(&sides.bottom)),
            ("margin_left_mm", length(&sides.left)),
            ("scale", (*scale != default.scale).then(|| Value::Number(scale.factor()))),
            ("header", text(header)),
            ("footer", text(footer)),
            ("pages", pages.clone().map(Value::Text)),
            ("css_page_size", css_page_size.then_some(Value::Flag(true))),
            ("tagged", (!tagged).then_some(Value::Flag(false))),
            ("outline", outline.then_some(Value::Flag(true))),
            ("first_page_header", text(first_page_header)),
            ("first_page_footer", text(first_page_footer)),
        ];
        members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }

    /// Checks what the bounds of the members do not say: headers and footers, and members that do not fit together.
    ///
    /// # Errors
    /// The first member that is wrong.
    pub(super) fn check(object: &Object) -> Result<(), Field> {
        let refuse = |member: &'static str, allowed: &str| {
            let seen = object.get(member).map(ToString::to_string).unwrap_or_default();
            Err(Field::new("pdf", &seen, allowed).in_member(Some(member)))
        };
        for member in ["header", "footer", "first_page_header", "first_page_footer"] {
            if let Some(Value::Text(text)) = object.get(member)
                && PageText::parse(text).is_none()
            {
                return refuse(member, PageText::ALLOWED);
            }
        }
        // The bounds of all members were checked before.
        let Some(layout) = Self::of(object) else { return Ok(()) };
        let Margins { top, right, bottom, left } = layout.margins();
        let (width, height) = layout.sheet_inches();
        // A little less, for what is lost by rounding.
        let least = LEAST_AREA.inches() - 1e-6;
        let is_printed = |text: &Option<PageText>| text.as_ref().is_some_and(|text| !text.as_str().is_empty());
        let is_narrow = width - left.inches() - right.inches() < least;
        let is_low = height - top.inches() - bottom.inches() < least;
        let given = |members: [&'static str; 2]| {
            members.into_iter().find(|member| object.contains_key(*member)).unwrap_or("margin_mm")
        };
        let rules = [
            (
                layout.width.is_some() && object.contains_key("format"),
                "format",
                "left out where `pdf.width_mm` is used",
            ),
            (
                layout.width.is_some() && layout.height.is_none() && !layout.single_page,
                "width_mm",
                "used together with `pdf.height_mm`",
            ),
            (layout.height.is_some() && layout.single_page, "height_mm", "left out where `pdf.single_page` is used"),
            (layout.height.is_some() && layout.width.is_none(), "height_mm", "used together with `pdf.width_mm`"),
            (layout.css_page_size && layout.single_page, "css_page_size", "left out where `pdf.single_page` is used"),
            (layout.outline && !layout.tagged, "outline", "left out where `pdf.tagged` is false"),
            (is_printed(&layout.header) && top < TEXT_MARGIN, "header", TOP_MARGIN),
            (is_printed(&layout.footer) && bottom < TEXT_MARGIN, "footer", BOTTOM_MARGIN),
            (is_printed(&layout.first_page_header) && top < TEXT_MARGIN, "first_page_header", TOP_MARGIN),
            (is_printed(&layout.first_page_footer) && bottom < TEXT_MARGIN, "first_page_footer", BOTTOM_MARGIN),
            (
                is_narrow,
                given(["margin_left_mm", "margin_right_mm"]),
                "so small that 10 mm of the width of the paper are left",
            ),
            (
                is_low && !layout.single_page,
                given(["margin_top_mm", "margin_bottom_mm"]),
                "so small that 10 mm of the height of the paper are left",
            ),
        ];
        match rules.into_iter().find(|(is_broken, _, _)| *is_broken) {
            Some((_, member, allowed)) => refuse(member, allowed),
            None => Ok(()),
        }
    }

    /// Whether the first page has a line of its own.
    pub fn has_first_page(&self) -> bool {
        self.first_page_header.is_some() || self.first_page_footer.is_some()
    }

    /// The margins of all sides.
    pub fn margins(&self) -> Margins<Length> {
        let all = Length::of_mm(self.margin_mm.into());
        let Margins { top, right, bottom, left } = self.sides;
        Margins {
            top: top.unwrap_or(all),
            right: right.unwrap_or(all),
            bottom: bottom.unwrap_or(all),
            left: left.unwrap_or(all),
        }
    }

    /// Width and height of the paper in inches. The height is not that of a single page.
    pub fn sheet_inches(&self) -> (f64, f64) {
        let (width, height) = match (self.width, self.height) {
            (Some(width), Some(height)) => (width.inches(), height.inches()),
            (Some(width), None) => (width.inches(), width.inches()),
            (None, _) => self.paper.inches(),
        };
        if self.landscape { (height, width) } else { (width, height) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(json: &str) -> Object {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn layout_of_a_pdf_survives_its_object_and_omits_defaults() {
        assert_eq!(PdfLayout::default().to_object(), Object::new());
        let length = |millimetres: f64| Length::read(&Value::Number(millimetres));
        let layout = PdfLayout {
            paper: Paper::Legal,
            width: length(80.5),
            height: length(200.0),
            landscape: true,
            single_page: true,
            background: false,
            margin_mm: 0,
            sides: Margins { top: length(12.7), right: length(0.0), bottom: length(100.0), left: length(1.5) },
            scale: PrintScale(755),
            header: PageText::parse("{title}"),
            footer: PageText::parse("{page} / {pages}"),
            pages: Some("1-2".to_owned()),
            css_page_size: true,
            tagged: false,
            outline: true,
            first_page_header: PageText::parse(""),
            first_page_footer: PageText::parse("{date}"),
        };
        let written = layout.to_object();
        assert_eq!(written.len(), 20);
        assert_eq!((&written["margin_top_mm"], &written["scale"]), (&Value::Number(12.7), &Value::Number(0.755)));
        assert_eq!(PdfLayout::of(&written), Some(layout));
        let unknown = [("paper".to_owned(), Value::Flag(true))].into();
        assert_eq!(PdfLayout::of(&unknown), None);
        assert_eq!(
            PdfLayout::of(&object(r#"{"scale": 1, "tagged": true, "format": "a4"}"#)),
            Some(PdfLayout::default())
        );
    }

    #[test]
    fn margins_of_single_sides_replace_the_common_one() {
        let layout = PdfLayout::of(&object(r#"{"margin_mm": 20, "margin_left_mm": 25.4}"#)).unwrap();
        let Margins { top, right, bottom, left } = layout.margins();
        assert_eq!((top, right, bottom), (Length::of_mm(20), Length::of_mm(20), Length::of_mm(20)));
        assert!((left.inches() - 1.0).abs() < 1e-9);
        let turned = PdfLayout::of(&object(r#"{"width_mm": 50.8, "height_mm": 254, "landscape": true}"#)).unwrap();
        let (width, height) = turned.sheet_inches();
        assert!((width - 10.0).abs() < 1e-9 && (height - 2.0).abs() < 1e-9, "{width} x {height}");
    }

    #[test]
    fn members_that_do_not_fit_together_are_named() {
        for good in [
            r#"{"width_mm": 80, "height_mm": 120}"#,
            r#"{"width_mm": 80, "single_page": true, "margin_mm": 0}"#,
            r#"{"width_mm": 30, "height_mm": 30}"#,
            r#"{"header": "{title}", "margin_mm": 10}"#,
            r#"{"header": "{title}", "margin_mm": 0, "margin_top_mm": 15}"#,
            r#"{"outline": true}"#,
            r#"{"first_page_header": "", "margin_mm": 0}"#,
            r#"{"header": "{title}", "first_page_header": "{date}|a"}"#,
        ] {
            assert_eq!(PdfLayout::check(&object(good)), Ok(()), "{good}");
        }
        for (bad, member) in [
            (r#"{"width_mm": 80, "height_mm": 120, "format": "a5"}"#, "format"),
            (r#"{"width_mm": 80}"#, "width_mm"),
            (r#"{"height_mm": 80}"#, "height_mm"),
            (r#"{"width_mm": 80, "height_mm": 80, "single_page": true}"#, "height_mm"),
            (r#"{"css_page_size": true, "single_page": true}"#, "css_page_size"),
            (r#"{"outline": true, "tagged": false}"#, "outline"),
            (r#"{"header": "{title}", "margin_mm": 9}"#, "header"),
            (r#"{"footer": "{page}", "margin_bottom_mm": 0}"#, "footer"),
            (r#"{"header": "{total}"}"#, "header"),
            (r#"{"footer": "a|b|c|d"}"#, "footer"),
            (r#"{"first_page_header": "{total}"}"#, "first_page_header"),
            (r#"{"first_page_footer": "a", "margin_mm": 9}"#, "first_page_footer"),
            (r#"{"format": "a6", "margin_mm": 50}"#, "margin_mm"),
            (r#"{"format": "a5", "margin_right_mm": 100, "margin_mm": 40}"#, "margin_right_mm"),
            (r#"{"format": "a5", "landscape": true, "margin_bottom_mm": 100, "margin_mm": 40}"#, "margin_bottom_mm"),
        ] {
            let field = PdfLayout::check(&object(bad)).unwrap_err();
            assert_eq!((field.name, field.member), ("pdf", Some(member)), "{bad}: {field}");
        }
    }
}
