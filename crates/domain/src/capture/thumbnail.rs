//! A smaller copy of the image.

use grabd_options::{Object, Value};

/// How the smaller copy of the image is made. Its sides are at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Thumbnail {
    /// The largest width in pixels.
    pub width: u32,
    /// The largest height in pixels.
    pub height: u32,
    /// What it shows.
    pub fit: ThumbnailFit,
}

/// What a smaller copy of an image shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ThumbnailFit {
    /// All of the image.
    #[default]
    Contain,
    /// The top of the image, cut so that it has the shape of the copy.
    Cover,
}

impl ThumbnailFit {
    const ALL: [Self; 2] = [Self::Contain, Self::Cover];

    /// Its name in the APIs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Contain => "contain",
            Self::Cover => "cover",
        }
    }
}

impl Thumbnail {
    /// None if a member is missing or impossible.
    pub(super) fn of(object: &Object) -> Option<Self> {
        let side = |name: &str| match object.get(name) {
            Some(Value::Integer(pixels)) => u32::try_from(*pixels).ok().filter(|pixels| *pixels > 0),
            _ => None,
        };
        let fit = match object.get("fit") {
            Some(Value::Text(name)) => ThumbnailFit::ALL.into_iter().find(|fit| fit.as_str() == name)?,
            Some(_) => return None,
            None => ThumbnailFit::default(),
        };
        Some(Self { width: side("width")?, height: side("height")?, fit })
    }

    /// The members, without the fit if that is the default.
    pub(super) fn to_object(self) -> Object {
        let Self { width, height, fit } = self;
        let members = [
            ("width", Some(Value::Integer(width.into()))),
            ("height", Some(Value::Integer(height.into()))),
            ("fit", (fit != ThumbnailFit::default()).then(|| Value::Text(fit.as_str().to_owned()))),
        ];
        members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::{CaptureRequest, CaptureSpec};
    use crate::faults::Fault;

    fn parse(json: &str) -> Result<CaptureSpec, Fault> {
        let mut request = CaptureRequest { url: Some("https://example.com/".into()), ..CaptureRequest::default() };
        assert!(request.set("thumbnail", serde_json::from_str(json).unwrap()), "{json}");
        CaptureSpec::parse(&request)
    }

    #[test]
    fn thumbnail_is_stored_without_its_default_fit() {
        for (json, fit, stored_as) in [
            (
                r#"{"width": 400, "height": 300, "fit": "contain"}"#,
                ThumbnailFit::Contain,
                r#"{"height":300,"width":400}"#,
            ),
            (
                r#"{"width": 400, "height": 300, "fit": "cover"}"#,
                ThumbnailFit::Cover,
                r#"{"fit":"cover","height":300,"width":400}"#,
            ),
        ] {
            let spec = parse(json).unwrap();
            assert_eq!(spec.thumbnail, Some(Thumbnail { width: 400, height: 300, fit }));
            let stored = serde_json::to_string(&spec).unwrap();
            assert!(stored.ends_with(&format!(r#""thumbnail":{stored_as}}}"#)), "{stored}");
            assert_eq!(serde_json::from_str::<CaptureSpec>(&stored).unwrap(), spec);
        }
    }

    #[test]
    fn invalid_thumbnails_are_refused() {
        for json in [
            r#"{"width": 400}"#,
            r#"{"width": 15, "height": 300}"#,
            r#"{"width": 400, "height": 1025}"#,
            r#"{"width": 400, "height": 300, "fit": "fill"}"#,
            r#"{"width": 400, "height": 300, "x": 0}"#,
        ] {
            assert_eq!(parse(json).unwrap_err().field().unwrap().name, "thumbnail", "{json}");
        }
    }
}
