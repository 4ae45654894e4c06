//! The pages, and the options that a visitor can choose.

use grabd_domain::capture::{CaptureRequest, Secret};
use grabd_domain::target::TargetUrl;

/// Maximum height of a full page of a live site, in CSS pixels. It bounds the time of the render and the size of the image.
const SITE_MAX_HEIGHT: i64 = 4000;

/// A page that visitors may capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SamplePage {
    /// Text and drawings. Comes with grabd.
    Daylight,
    /// Numbers and a chart, drawn by a script. Comes with grabd.
    Dashboard,
    /// A live page that the operator allows.
    Site(SampleSite),
}

/// A live page that the operator allows: its place in the list of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleSite(pub(super) usize);

/// A capture for a visitor.
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

/// All combinations of three options.
const OPTIONS: usize = 8;

impl SamplePage {
    /// The pages that come with grabd.
    pub const BUNDLED: [Self; 2] = [Self::Daylight, Self::Dashboard];
}

impl Sample {
    /// Number of samples of the pages that come with grabd.
    pub(super) const BUNDLED: usize = SamplePage::BUNDLED.len() * OPTIONS;

    /// The place of this sample: among those of the pages that come with grabd, or among those of live pages.
    pub(super) fn place(self) -> Place {
        let Self { page, is_phone, full_page, is_dark } = self;
        let options = usize::from(is_phone) * 4 + usize::from(full_page) * 2 + usize::from(is_dark);
        match page {
            SamplePage::Daylight => Place::Bundled(options),
            SamplePage::Dashboard => Place::Bundled(OPTIONS + options),
            SamplePage::Site(SampleSite(at)) => Place::Site(at * OPTIONS + options),
        }
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

    /// The request that makes the image. `sites` are the live pages. None if there is no such page.
    pub(super) fn request(self, sites: &[TargetUrl]) -> Option<CaptureRequest> {
        let html = |text: &str| CaptureRequest { html: Some(Secret(text.to_owned())), ..self.options() };
        let request = match self.page {
            SamplePage::Daylight => html(include_str!("daylight.html")),
            SamplePage::Dashboard => html(include_str!("dashboard.html")),
            SamplePage::Site(SampleSite(at)) => CaptureRequest {
                url: Some(sites.get(at)?.as_str().to_owned()),
                max_height: self.full_page.then_some(SITE_MAX_HEIGHT),
                ..self.options()
            },
        };
        Some(CaptureRequest { format: Some("webp".to_owned()), quality: Some(80), ..request })
    }
}

/// Where the image of a sample is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// Of a page that comes with grabd.
    Bundled(usize),
    /// Of a live page.
    Site(usize),
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use grabd_domain::capture::CaptureSpec;

    use super::*;

    fn all(page: SamplePage) -> impl Iterator<Item = Sample> {
        (0..OPTIONS).map(move |bits| {
            let (is_phone, full_page, is_dark) = (bits & 1 > 0, bits & 2 > 0, bits & 4 > 0);
            Sample { page, is_phone, full_page, is_dark }
        })
    }

    #[test]
    fn all_samples_have_valid_options_and_places_of_their_own() {
        let mut places = BTreeSet::new();
        for page in SamplePage::BUNDLED.into_iter().chain([0, 1].map(|at| SamplePage::Site(SampleSite(at)))) {
            for sample in all(page) {
                let url = Some("https://example.com/".to_owned());
                let spec = CaptureSpec::parse(&CaptureRequest { url, ..sample.options() }).unwrap();
                assert_eq!((spec.full_page, spec.appearance.is_dark), (sample.full_page, sample.is_dark));
                places.insert(sample.place());
            }
        }
        let bundled = (0..Sample::BUNDLED).map(Place::Bundled);
        assert_eq!(places, bundled.chain((0..2 * OPTIONS).map(Place::Site)).collect());
    }
}
