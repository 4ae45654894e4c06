//! What is stopped before the image is taken.

/// What is stopped before the image is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Freeze {
    /// Nothing.
    #[default]
    Nothing,
    /// What moves by itself: animations, transitions, carets, videos and animated images.
    Motion,
    /// The same, and the clock and the random numbers of the page's scripts are fixed.
    All,
}

impl Freeze {
    /// From the options `freeze` and `freeze_all`, of which the second includes the first.
    pub(super) fn of(motion: Option<bool>, all: Option<bool>) -> Self {
        match (motion, all) {
            (_, Some(true)) => Self::All,
            (Some(true), Some(false) | None) => Self::Motion,
            (Some(false) | None, Some(false) | None) => Self::Nothing,
        }
    }

    /// Whether what moves by itself is stopped.
    pub const fn stops_motion(self) -> bool {
        match self {
            Self::Nothing => false,
            Self::Motion | Self::All => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::{CaptureRequest, CaptureSpec};

    #[test]
    fn all_includes_motion_and_is_stored_alone() {
        for (freeze, freeze_all, expected, stored) in [
            (None, None, Freeze::Nothing, ""),
            (Some(false), Some(false), Freeze::Nothing, ""),
            (Some(true), None, Freeze::Motion, r#","freeze":true"#),
            (Some(true), Some(false), Freeze::Motion, r#","freeze":true"#),
            (None, Some(true), Freeze::All, r#","freeze_all":true"#),
            (Some(true), Some(true), Freeze::All, r#","freeze_all":true"#),
        ] {
            let url = Some("https://example.com/".to_owned());
            let request = CaptureRequest { url, freeze, freeze_all, ..CaptureRequest::default() };
            let spec = CaptureSpec::parse(&request).unwrap();
            assert_eq!(spec.freeze, expected);
            let text = serde_json::to_string(&spec).unwrap();
            assert!(text.ends_with(&format!(r#""selector":null{stored}}}"#)), "{text}");
            assert_eq!(serde_json::from_str::<CaptureSpec>(&text).unwrap(), spec);
        }
    }
}
