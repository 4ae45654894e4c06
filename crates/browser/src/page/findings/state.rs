//! The state of a page as reported by our scripts.

use std::time::Duration;

use grabd_domain::capture::{Blocking, RequestType};
use grabd_domain::grabs::{Challenge, Warning};
use serde::Deserialize;

/// The amount of visible content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::page) enum Content {
    /// Only a background.
    Empty,
    /// A few words.
    Sparse,
    /// Text, images, controls.
    #[default]
    Full,
}

/// The state that `scripts/state.js` reports. Unknown values have their defaults.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(in crate::page) struct PageState {
    /// True if nothing in the page can start any activity: no scripts, frames, media or refresh.
    pub(in crate::page) still: bool,
    /// The bot protection service whose challenge it looks like.
    pub(in crate::page) challenge: Option<Challenge>,
    pub(in crate::page) content: Content,
    /// True if the page has its own background. Only set if the content is not `full`.
    pub(in crate::page) page_background: bool,
    /// True if the page shows little text, and no more than one screen can be seen: it may be a splash screen.
    pub(in crate::page) one_screen: bool,
    /// True if the page has scripts.
    pub(in crate::page) scripted: bool,
    /// True if the page marks itself as loading, for example with `aria-busy`.
    pub(in crate::page) busy: bool,
    /// True if an endless animation is in view, as of a spinner.
    pub(in crate::page) endless_animation: bool,
    /// True if it was captured before storage, encryption or a service worker had answered, while it showed that it is
    /// loading. Set by the wait.
    #[serde(skip)]
    pub(in crate::page) is_unanswered: bool,
    refresh_ms: Option<f64>,
    /// The number of observed changes.
    pub(in crate::page) changes: u64,
    images: Images,
    unfinished_frames: u32,
    failed_fonts: u32,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Images {
    failed: u32,
    missing: u32,
    /// The URLs of those that failed.
    failed_urls: Vec<String>,
}

impl PageState {
    /// Returns true if more content is expected.
    pub(in crate::page) fn is_loading(&self) -> bool {
        self.busy || self.endless_animation || self.content != Content::Full
    }

    /// The time after which a `meta` element redirects the page.
    pub(in crate::page) fn refreshes_after(&self) -> Option<Duration> {
        self.refresh_ms.and_then(milliseconds)
    }

    /// The state without what is missing because the caller does not want it: blocked images, also those for which
    /// `is_listed`, and this number of fonts.
    pub(in crate::page) fn without_blocked(
        mut self,
        blocking: &Blocking,
        is_listed: impl Fn(&str) -> bool,
        fonts: u32,
    ) -> Self {
        if blocking.has_type(RequestType::Image) {
            self.images = Images::default();
        }
        let blocked = self.images.failed_urls.iter().filter(|url| blocking.has_url(url) || is_listed(url)).count();
        self.images.failed = self.images.failed.saturating_sub(u32::try_from(blocked).unwrap_or(u32::MAX));
        self.failed_fonts = self.failed_fonts.saturating_sub(fonts);
        self
    }

    /// What may be missing from an image of the page. `requests` is the number of requests that may still change it.
    pub(in crate::page) fn warnings(&self, requests: u32) -> Vec<Warning> {
        let is_waiting = requests > 0 || self.content != Content::Full;
        let counted = [
            (requests, Warning::RequestsInFlight(requests)),
            (self.images.failed, Warning::ImagesFailed(self.images.failed)),
            (self.images.missing, Warning::ImagesMissing(self.images.missing)),
            (self.failed_fonts, Warning::FontsFailed(self.failed_fonts)),
            // On a complete page, an endless animation is decoration.
            (u32::from(self.busy || (self.endless_animation && is_waiting)), Warning::SpinnerVisible),
            (self.unfinished_frames, Warning::FrameUnfinished),
            (u32::from(self.is_unanswered), Warning::WorkPending),
        ];
        counted.into_iter().filter(|(count, _)| *count > 0).map(|(_, warning)| warning).collect()
    }
}

fn milliseconds(ms: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(ms / 1000.0).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(json: &str) -> PageState {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn warnings_list_missing_content() {
        assert_eq!(state("{}").warnings(0), []);
        let all = state(
            r#"{"content":"empty","busy":true,"images":{"failed":2,"missing":1},"unfinishedFrames":1,"failedFonts":1}"#,
        );
        let names: Vec<String> = all.warnings(3).iter().map(ToString::to_string).collect();
        assert_eq!(
            names,
            [
                "requests_in_flight:3",
                "images_failed:2",
                "images_missing:1",
                "fonts_failed:1",
                "spinner_visible",
                "frame_unfinished"
            ]
        );
    }

    #[test]
    fn endless_animation_is_a_spinner_only_while_requests_are_pending() {
        let moving = state(r#"{"endlessAnimation":true}"#);
        assert_eq!(moving.warnings(0), []);
        assert_eq!(moving.warnings(1), [Warning::RequestsInFlight(1), Warning::SpinnerVisible]);
        assert!(moving.is_loading());
    }

    #[test]
    fn invalid_refresh_times_are_ignored() {
        let after = |json: &str| state(json).refreshes_after();
        assert_eq!(after(r#"{"refreshMs":1500}"#), Some(Duration::from_millis(1500)));
        assert_eq!((after(r#"{"refreshMs":-1}"#), after(r#"{"refreshMs":1e300}"#)), (None, None));
    }
}
