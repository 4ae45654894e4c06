//! What may be wrong with an image.

use std::fmt;

/// Something that may be missing from an image. Displayed as a machine-readable word such as `images_failed:3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Warning {
    /// Number of unfinished requests that could have changed the image.
    RequestsInFlight(u32),
    /// Number of the page's images that failed to load.
    ImagesFailed(u32),
    /// Number of the page's images that had not loaded yet.
    ImagesMissing(u32),
    /// Number of web fonts that failed to load.
    FontsFailed(u32),
    /// The page still showed a loading indicator.
    SpinnerVisible,
    /// The page has no content except its background.
    Blank,
    /// The page is wider than the image.
    WideCut,
    /// The page kept growing while it was scrolled.
    Endless,
    /// The page has a virtualized list, which renders only the visible rows.
    VirtualList,
    /// A frame in the image had not finished loading.
    FrameUnfinished,
    /// Number of documents in frames that were not loaded: of domains that the service does not capture, or whose sites opt out.
    DocumentsDenied(u32),
    /// A text or the links beside the image were cut at their maximum size.
    AlsoTruncated,
    /// The document broke off, or was still arriving.
    DocumentIncomplete,
    /// Storage, encryption or a service worker of the page had not answered.
    WorkPending,
    /// A box on the page can be scrolled further than the image shows.
    ScrollerCut,
    /// Number of characters for which this machine has no font.
    GlyphsMissing(u32),
    /// Number of elements that the selector matches. The image shows the first visible one.
    SelectorMany(u32),
    /// Number of areas of one colour where the page has an image or text.
    AreasBlank(u32),
    /// The beginning of the full page differs from the first screen.
    FirstScreenDiffers,
    /// The page has no main content, so that its text and Markdown are those of the whole page.
    NoMainContent,
    /// The evidence has no time stamp of another authority, although the operator wants one.
    EvidenceTimestampFailed,
}

impl Warning {
    const fn parts(self) -> (&'static str, Option<u32>) {
        match self {
            Self::RequestsInFlight(count) => ("requests_in_flight", Some(count)),
            Self::ImagesFailed(count) => ("images_failed", Some(count)),
            Self::ImagesMissing(count) => ("images_missing", Some(count)),
            Self::FontsFailed(count) => ("fonts_failed", Some(count)),
            Self::SpinnerVisible => ("spinner_visible", None),
            Self::Blank => ("blank", None),
            Self::WideCut => ("wide_cut", None),
            Self::Endless => ("endless", None),
            Self::VirtualList => ("virtual_list", None),
            Self::FrameUnfinished => ("frame_unfinished", None),
            Self::DocumentsDenied(count) => ("documents_denied", Some(count)),
            Self::AlsoTruncated => ("also_truncated", None),
            Self::DocumentIncomplete => ("document_incomplete", None),
            Self::WorkPending => ("work_pending", None),
            Self::ScrollerCut => ("scroller_cut", None),
            Self::GlyphsMissing(count) => ("glyphs_missing", Some(count)),
            Self::SelectorMany(count) => ("selector_many", Some(count)),
            Self::AreasBlank(count) => ("areas_blank", Some(count)),
            Self::FirstScreenDiffers => ("first_screen_differs", None),
            Self::NoMainContent => ("no_main_content", None),
            Self::EvidenceTimestampFailed => ("evidence_timestamp_failed", None),
        }
    }

    /// Parses the displayed form.
    pub fn parse(text: &str) -> Option<Self> {
        let (word, count) = match text.split_once(':') {
            Some((word, count)) => (word, Some(count.parse().ok()?)),
            None => (text, None),
        };
        let number = count.unwrap_or(0);
        [
            Self::RequestsInFlight(number),
            Self::ImagesFailed(number),
            Self::ImagesMissing(number),
            Self::FontsFailed(number),
            Self::SpinnerVisible,
            Self::Blank,
            Self::WideCut,
            Self::Endless,
            Self::VirtualList,
            Self::FrameUnfinished,
            Self::DocumentsDenied(number),
            Self::AlsoTruncated,
            Self::DocumentIncomplete,
            Self::WorkPending,
            Self::ScrollerCut,
            Self::GlyphsMissing(number),
            Self::SelectorMany(number),
            Self::AreasBlank(number),
            Self::FirstScreenDiffers,
            Self::NoMainContent,
            Self::EvidenceTimestampFailed,
        ]
        .into_iter()
        .find(|warning| warning.parts() == (word, count))
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parts() {
            (word, Some(count)) => write!(f, "{word}:{count}"),
            (word, None) => f.write_str(word),
        }
    }
}

/// Serializes warnings as words. Unknown words, written by a later version, are skipped.
pub(super) mod words {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::Warning;

    pub(crate) fn serialize<S: Serializer>(warnings: &[Warning], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(warnings.iter().map(ToString::to_string))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Warning>, D::Error> {
        let words = Vec::<String>::deserialize(deserializer)?;
        Ok(words.iter().filter_map(|word| Warning::parse(word)).collect())
    }
}
