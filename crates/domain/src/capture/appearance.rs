//! What the page learns about its visitor, and how the visitor sees it.

use grabd_options::CaptureRequest;

use super::Geolocation;

/// What the page learns about its visitor, and how the visitor sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Appearance {
    /// Ask for the dark design instead of the light one.
    pub is_dark: bool,
    /// Ask the page to leave out animations.
    pub reduced_motion: bool,
    /// Use the styles for printing instead of those for screens.
    pub is_print: bool,
    /// Language tag.
    pub locale: Option<String>,
    /// IANA time zone.
    pub timezone: Option<String>,
    /// Replaces the browser's User-Agent.
    pub user_agent: Option<String>,
    /// Position.
    pub geolocation: Option<Geolocation>,
    /// The vision deficiency of the visitor.
    pub vision: Option<Vision>,
}

impl Appearance {
    /// `None` if an option has an impossible value.
    pub(super) fn of(request: &CaptureRequest) -> Option<Self> {
        Some(Self {
            is_dark: request.color_scheme.as_deref() == Some("dark"),
            reduced_motion: request.reduced_motion.unwrap_or(false),
            is_print: request.media.as_deref() == Some("print"),
            locale: request.locale.clone(),
            timezone: request.timezone.clone(),
            user_agent: request.user_agent.clone(),
            geolocation: match &request.geolocation {
                Some(position) => Some(Geolocation::of(position)?),
                None => None,
            },
            vision: match request.vision.as_deref() {
                None | Some("none") => None,
                Some(name) => Some(Vision::parse(name)?),
            },
        })
    }
}

/// A vision deficiency, with which the image is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Vision {
    /// No green is perceived.
    Deuteranopia,
    /// No red is perceived.
    Protanopia,
    /// No blue is perceived.
    Tritanopia,
    /// No colour is perceived.
    Achromatopsia,
    /// Everything is blurred.
    BlurredVision,
    /// Contrast is reduced.
    ReducedContrast,
}

impl Vision {
    /// Every deficiency.
    pub const ALL: [Self; 6] = [
        Self::Deuteranopia,
        Self::Protanopia,
        Self::Tritanopia,
        Self::Achromatopsia,
        Self::BlurredVision,
        Self::ReducedContrast,
    ];

    /// Its name in the APIs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Deuteranopia => "deuteranopia",
            Self::Protanopia => "protanopia",
            Self::Tritanopia => "tritanopia",
            Self::Achromatopsia => "achromatopsia",
            Self::BlurredVision => "blurred_vision",
            Self::ReducedContrast => "reduced_contrast",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|vision| vision.as_str() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::CaptureSpec;

    fn parse(vision: &str) -> Option<CaptureSpec> {
        let request = CaptureRequest {
            url: Some("https://example.com/".into()),
            vision: Some(vision.to_owned()),
            ..CaptureRequest::default()
        };
        CaptureSpec::parse(&request).ok()
    }

    #[test]
    fn every_vision_deficiency_is_stored_by_its_name() {
        for vision in Vision::ALL {
            let spec = parse(vision.as_str()).unwrap();
            assert_eq!(spec.appearance.vision, Some(vision));
            let stored = serde_json::to_string(&spec).unwrap();
            assert!(stored.ends_with(&format!(r#","vision":"{}"}}"#, vision.as_str())), "{stored}");
            assert_eq!(serde_json::from_str::<CaptureSpec>(&stored).unwrap(), spec);
        }
        let none = parse("none").unwrap();
        assert_eq!(none.appearance.vision, None);
        assert!(!serde_json::to_string(&none).unwrap().contains("vision"));
        for refused in ["None", "blurredVision", ""] {
            assert!(parse(refused).is_none(), "{refused}");
        }
    }
}
