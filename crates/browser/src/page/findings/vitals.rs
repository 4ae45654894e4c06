//! Web vitals: how fast a page was shown, as the browser measured it during the load.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::page::load::frame_drawing::Frames;
use crate::page::script;
use crate::page::tab::Tab;

/// The time limit for reading the vitals. They are left out if the page is too busy.
const LIMIT: Duration = Duration::from_secs(1);

/// What is known of a document. Times are in milliseconds from the beginning of its navigation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all(deserialize = "camelCase"))]
pub(in crate::page) struct WebVitals {
    /// When the first byte of the document came.
    ttfb_ms: Option<f64>,
    /// When the first text or image was shown.
    fcp_ms: Option<f64>,
    /// When the largest text or image up to now was shown.
    lcp_ms: Option<f64>,
    /// How much the layout has shifted.
    cls: Option<f64>,
}

impl WebVitals {
    /// Without values that do not tell what a user would see: `has_real_time` if the time of the page has only passed as in
    /// reality, `is_drawn` if the page was also drawn while it loaded.
    fn only_real(self, has_real_time: bool, is_drawn: bool) -> Self {
        match (has_real_time, is_drawn) {
            (true, true) => self,
            (true, false) => Self { ttfb_ms: self.ttfb_ms, ..Self::default() },
            (false, _) => Self::default(),
        }
    }
}

/// Reads the vitals of the current document. `has_real_time` says whether the document came before virtual time was used.
pub(in crate::page) async fn read(tab: &Tab, has_real_time: bool) -> WebVitals {
    // Pages that are drawn on demand are drawn when they have loaded.
    let is_drawn = matches!(tab.frames, Frames::Timer);
    let read = script::call::<WebVitals>(tab, LIMIT, "vitals", &()).await;
    // What goes wrong is noticed by the steps that need the page.
    read.ok().flatten().unwrap_or_default().only_real(has_real_time, is_drawn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vitals_that_virtual_time_changes_are_null() {
        let read = r#"{"ttfbMs":12.5,"fcpMs":90,"lcpMs":120.1,"cls":0.05}"#;
        let measured: WebVitals = serde_json::from_str(read).unwrap();
        let written = |real, drawn| serde_json::to_string(&measured.only_real(real, drawn)).unwrap();
        assert_eq!(written(true, true), r#"{"ttfb_ms":12.5,"fcp_ms":90.0,"lcp_ms":120.1,"cls":0.05}"#);
        assert_eq!(written(true, false), r#"{"ttfb_ms":12.5,"fcp_ms":null,"lcp_ms":null,"cls":null}"#);
        assert_eq!(written(false, true), r#"{"ttfb_ms":null,"fcp_ms":null,"lcp_ms":null,"cls":null}"#);
    }
}
