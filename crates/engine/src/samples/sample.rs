//! The pages, and the options that a visitor can choose.

use grabd_domain::capture::{CaptureRequest, Secret};

/// A page that comes with grabd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SamplePage {
    /// Text and drawings.
    Daylight,
    /// Numbers and a chart, drawn by a script.
    Dashboard,
}

/// A capture of a page that comes with grabd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The page.
    pub page: SamplePage,
    /// Show it on a phone instead of a desktop.
    pub is_phone: bool,
    /// Capture the full page instead of the viewport.
    pub full_page: bool,
    /// Ask for the dark design instead of the light one.
    pub is_dark: bool,
}

impl SamplePage {
    /// All pages.
    pub const ALL: [Self; 2] = [Self::Daylight, Self::Dashboard];

    /// The word for it in URLs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Daylight => "daylight",
            Self::Dashboard => "dashboard",
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Daylight => "Field guide",
            Self::Dashboard => "Dashboard",
        }
    }

    const fn html(self) -> &'static str {
        match self {
            Self::Daylight => include_str!("daylight.html"),
            Self::Dashboard => include_str!("dashboard.html"),
        }
    }
}

impl Sample {
    /// Number of samples: for each page, all combinations of three options.
    pub(super) const COUNT: usize = SamplePage::ALL.len() * 8;

    /// The place of this sample among all.
    pub(super) fn index(self) -> usize {
        let Self { page, is_phone, full_page, is_dark } = self;
        let page = match page {
            SamplePage::Daylight => 0,
            SamplePage::Dashboard => 1,
        };
        page * 8 + usize::from(is_phone) * 4 + usize::from(full_page) * 2 + usize::from(is_dark)
    }

    /// The chosen options, without a page.
    pub fn options(self) -> CaptureRequest {
        CaptureRequest {
            device: self.is_phone.then(|| "phone".to_owned()),
            full_page: self.full_page.then_some(true),
            color_scheme: self.is_dark.then(|| "dark".to_owned()),
            ..CaptureRequest::default()
        }
    }

    /// The request that makes the image.
    pub(super) fn request(self) -> CaptureRequest {
        CaptureRequest {
            html: Some(Secret(self.page.html().to_owned())),
            format: Some("webp".to_owned()),
            quality: Some(80),
            ..self.options()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use grabd_domain::capture::CaptureSpec;

    use super::*;

    #[test]
    fn all_samples_are_valid_and_have_places_of_their_own() {
        let mut places = BTreeSet::new();
        for page in SamplePage::ALL {
            for bits in 0..8 {
                let (is_phone, full_page, is_dark) = (bits & 1 > 0, bits & 2 > 0, bits & 4 > 0);
                let sample = Sample { page, is_phone, full_page, is_dark };
                let spec = CaptureSpec::parse(&sample.request()).unwrap();
                assert_eq!((spec.full_page, spec.appearance.is_dark), (full_page, is_dark));
                places.insert(sample.index());
            }
        }
        assert_eq!(places, (0..Sample::COUNT).collect());
    }
}
