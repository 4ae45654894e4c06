//! Elements that are outlined in the image.

use grabd_options::{Object, Value};

/// Elements that are outlined in the image.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Highlight {
    /// The CSS selector of the elements.
    pub selector: String,
    /// What is written beside each outline.
    pub label: Option<String>,
    /// The colour of the outlines.
    pub color: HighlightColor,
}

/// The colour of an outline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum HighlightColor {
    #[default]
    Red,
    Orange,
    Yellow,
    Green,
    Blue,
    Purple,
    Black,
    White,
}

impl HighlightColor {
    const ALL: [Self; 8] =
        [Self::Red, Self::Orange, Self::Yellow, Self::Green, Self::Blue, Self::Purple, Self::Black, Self::White];

    /// Its name in the APIs, which is also that in CSS.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Red => "red",
            Self::Orange => "orange",
            Self::Yellow => "yellow",
            Self::Green => "green",
            Self::Blue => "blue",
            Self::Purple => "purple",
            Self::Black => "black",
            Self::White => "white",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|color| color.as_str() == name)
    }
}

impl Highlight {
    fn of(object: &Object) -> Option<Self> {
        let text = |name: &str| match object.get(name) {
            Some(Value::Text(text)) => Some(text.clone()),
            _ => None,
        };
        let color = text("color").map_or(Some(HighlightColor::default()), |name| HighlightColor::parse(&name))?;
        Some(Self { selector: text("selector")?, label: text("label"), color })
    }

    fn to_object(&self) -> Object {
        let Self { selector, label, color } = self;
        let members = [
            ("selector", Some(selector.clone())),
            ("label", label.clone()),
            ("color", (*color != HighlightColor::default()).then(|| color.as_str().to_owned())),
        ];
        members.into_iter().filter_map(|(name, text)| Some((name.to_owned(), Value::Text(text?)))).collect()
    }
}

/// The highlights of valid objects. `None` if a member is missing or impossible.
pub(super) fn read(objects: &[Object]) -> Option<Vec<Highlight>> {
    objects.iter().map(Highlight::of).collect()
}

/// What [`read`] reads. `None` if there are none.
pub(super) fn to_objects(highlights: &[Highlight]) -> Option<Vec<Object>> {
    (!highlights.is_empty()).then(|| highlights.iter().map(Highlight::to_object).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::{CaptureRequest, CaptureSpec};
    use crate::faults::Fault;

    fn parse(json: &str) -> Result<CaptureSpec, Fault> {
        let mut request = CaptureRequest { url: Some("https://example.com/".into()), ..CaptureRequest::default() };
        assert!(request.set("highlight", serde_json::from_str(json).unwrap()), "{json}");
        CaptureSpec::parse(&request)
    }

    #[test]
    fn highlights_are_stored_in_their_order_without_default_colours() {
        let spec = parse(
            r##"[{"selector": "#b", "label": "Total", "color": "blue"}, {"selector": "a[href='x=;y']", "color": "red"}]"##,
        )
        .unwrap();
        let [total, link] = &spec.highlight[..] else { panic!("{spec:?}") };
        assert_eq!((total.label.as_deref(), total.color), (Some("Total"), HighlightColor::Blue));
        assert_eq!((&*link.selector, link.color), ("a[href='x=;y']", HighlightColor::Red));
        let stored = serde_json::to_string(&spec).unwrap();
        let tail = r##""highlight":[{"color":"blue","label":"Total","selector":"#b"},{"selector":"a[href='x=;y']"}]}"##;
        assert!(stored.ends_with(tail), "{stored}");
        assert_eq!(serde_json::from_str::<CaptureSpec>(&stored).unwrap(), spec);
        assert!(!serde_json::to_string(&parse("[]").unwrap()).unwrap().contains("highlight"));
    }

    #[test]
    fn invalid_highlights_are_refused() {
        let many = format!("[{}]", [r#"{"selector": "a"}"#; 21].join(","));
        let long = format!(r#"[{{"selector": "a", "label": "{}"}}]"#, "x".repeat(61));
        for json in [
            r#"[{"label": "Total"}]"#,
            r#"[{"selector": " "}]"#,
            r#"[{"selector": "a", "color": "pink"}]"#,
            r#"[{"selector": "a", "label": ""}]"#,
            r#"[{"selector": "a", "width": 1}]"#,
            &long,
            &many,
        ] {
            let fault = parse(json).unwrap_err();
            assert_eq!(fault.field().unwrap().name, "highlight", "{json}: {fault}");
        }
    }
}
