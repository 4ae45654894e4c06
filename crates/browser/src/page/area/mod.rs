//! The part of the page that the image shows: the viewport, the whole page, one element, or a
//! rectangle.

mod clip;
mod element;
mod full_page;

use std::time::Duration;

use chromiumoxide::cdp::browser_protocol::page::Viewport as Clip;
use grabd_domain::capture::{Fit, Format};
use grabd_domain::grabs::Warning;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::drive::Drive;
use super::state::PageState;
use super::{CaptureError, script};
use crate::cdp::CallError;

/// The widest viewport. It limits the area, and with it the memory, of one image.
const MAX_WIDTH: u32 = 1920;

/// The limit of the encoder, beyond which it returns nothing.
const WEBP_MAX: u32 = 16_383;

/// How long a script may exceed its time limit before it counts as stuck.
const GRACE: Duration = Duration::from_secs(1);

/// The time for reading the state of a page whose budget is used up.
const STATE_TIME: Duration = Duration::from_millis(500);

/// The part of the page to capture.
#[derive(Clone, Debug, Default)]
pub(super) struct CaptureArea {
    /// The rectangle on the page. The viewport if `None`.
    pub(super) clip: Option<Clip>,
    /// True if something was cut off.
    pub(super) truncated: bool,
    /// True if the time ended before all content was loaded.
    pub(super) is_incomplete: bool,
    /// The current state of the page.
    pub(super) state: PageState,
    /// Warnings about this part of the page.
    pub(super) warnings: Vec<Warning>,
}

impl CaptureArea {
    /// The viewport.
    pub(super) fn viewport(state: PageState) -> Self {
        Self { state, ..Self::default() }
    }
}

/// Finds the part of the page that the spec requests and scrolls to load its content. `state` is the state of the
/// settled page.
pub(super) async fn find(drive: &Drive<'_>, state: PageState) -> Result<CaptureArea, CaptureError> {
    match (&drive.spec.selector, drive.spec.clip) {
        (Some(selector), _) => element::find(drive, selector).await,
        (None, Some(clip)) => clip::find(drive, clip).await,
        (None, None) if drive.spec.full_page => full_page::find(drive).await,
        (None, None) => Ok(CaptureArea::viewport(state)),
    }
}

/// Scales the image down to the size that the spec requests. The browser draws the page at that size: text stays sharp,
/// and no image has to be decoded and encoded again.
pub(super) async fn fit(drive: &Drive<'_>, area: CaptureArea) -> Result<CaptureArea, CaptureError> {
    let (fit, scale) = (drive.spec.fit, drive.spec.scale.factor());
    if fit == Fit::default() {
        return Ok(area);
    }
    let viewport = drive.spec.viewport;
    let (visible, width, height) = match &area.clip {
        Some(clip) => (clip.clone(), clip.width * scale, clip.height * scale),
        None => {
            let [width, height] = [viewport.width(), viewport.height()].map(f64::from);
            let found: Option<VisibleArea> = call_script(drive, STATE_TIME, "visibleArea", &()).await?;
            let found = found.unwrap_or(VisibleArea { x: 0.0, y: 0.0, width, height });
            let VisibleArea { x, y, width: visible_width, height: visible_height } = found;
            // On a phone, a page that is not made for it is wider than the viewport and shown smaller.
            let shown = if visible_width > 0.0 { width / visible_width } else { 1.0 };
            let clip = Clip { x, y, width: visible_width, height: visible_height, scale: shown };
            (clip, width * scale, height * scale)
        }
    };
    let factor = fit.factor(width, height);
    if factor >= 1.0 {
        return Ok(area);
    }
    // The browser rounds sizes up.
    let scale = visible.scale * factor * (1.0 - 1e-9);
    Ok(CaptureArea { clip: Some(Clip { scale, ..visible }), ..area })
}

#[derive(Deserialize)]
struct VisibleArea {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

/// Calls a script. Returns `None` also if its document was replaced, which the caller notices by itself.
async fn call_script<T: DeserializeOwned>(
    drive: &Drive<'_>,
    budget: Duration,
    function: &str,
    arguments: &impl Serialize,
) -> Result<Option<T>, CaptureError> {
    match script::call(drive.tab, budget + GRACE, function, arguments).await {
        Err(CallError::Refused { message, .. }) => {
            tracing::debug!(message, "a script ended early");
            Ok(None)
        }
        answer => Ok(answer?),
    }
}

/// The maximum size of an image.
#[derive(Clone, Copy)]
struct Bounds {
    /// The longest side in image pixels. The area is limited to that of a full page of the widest viewport.
    pixels: u32,
    scale: f64,
    /// The caller's height limit of a full page, in CSS pixels.
    max_height: Option<u32>,
}

impl Bounds {
    fn of(drive: &Drive<'_>) -> Self {
        let full_page_max = drive.limits.full_page_max_height;
        let pixels = match drive.spec.format {
            Format::Png | Format::Jpeg => full_page_max,
            Format::Webp => full_page_max.min(WEBP_MAX),
        };
        Self { pixels, scale: drive.spec.scale.factor(), max_height: drive.spec.max_height }
    }

    /// The longest side in CSS pixels.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a scale is at least 1")]
    fn side(self) -> u32 {
        (f64::from(self.pixels) / self.scale).floor() as u32
    }

    /// The largest height in CSS pixels.
    fn height(self) -> u32 {
        self.side().min(self.max_height.unwrap_or(u32::MAX))
    }

    /// The largest area in CSS pixels.
    fn area(self) -> f64 {
        f64::from(self.pixels) * f64::from(MAX_WIDTH) / (self.scale * self.scale)
    }
}

/// Rounds a rectangle to whole pixels, as the browser paints it, and cuts it to the bounds.
fn cut(x: f64, y: f64, width: f64, height: f64, bounds: Bounds) -> CaptureArea {
    let (left, top) = (x.round().max(0.0), y.round().max(0.0));
    let (right, bottom) = ((x + width).round().max(left + 1.0), (y + height).round().max(top + 1.0));
    let width = (right - left).min(bounds.side().into());
    let height = (bottom - top).min(bounds.height().into()).min((bounds.area() / width).floor());
    let is_narrower = right - left > width;
    let clip = Some(Clip { x: left, y: top, width, height, scale: 1.0 });
    let warnings = if is_narrower { vec![Warning::WideCut] } else { Vec::new() };
    CaptureArea { clip, truncated: is_narrower || bottom - top > height, warnings, ..CaptureArea::default() }
}

/// The end of scrolling and searching: after another settle budget at most.
fn end_of_search(drive: &Drive<'_>) -> Instant {
    (Instant::now() + drive.limits.settle_budget).min(drive.capture_by)
}

fn left_until(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now())
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_rounds_to_pixels_and_limits_the_size() {
        let rectangle = |area: &CaptureArea| area.clip.as_ref().map(|clip| (clip.x, clip.y, clip.width, clip.height));
        for (given, expected, truncated, is_wide) in [
            ((10.0, 20.0, 30.0, 40.0), (10.0, 20.0, 30.0, 40.0), false, false),
            ((10.4, 20.6, 30.2, 40.2), (10.0, 21.0, 31.0, 40.0), false, false),
            ((-5.0, -5.0, 20.0, 20.0), (0.0, 0.0, 15.0, 15.0), false, false),
            ((0.0, 0.0, 0.2, 0.2), (0.0, 0.0, 1.0, 1.0), false, false),
            ((0.0, 0.0, 50.0, 101.0), (0.0, 0.0, 50.0, 100.0), true, false),
            ((0.0, 0.0, 101.0, 50.0), (0.0, 0.0, 100.0, 50.0), true, true),
        ] {
            let area = cut(given.0, given.1, given.2, given.3, Bounds { pixels: 100, scale: 1.0, max_height: None });
            assert_eq!((area.truncated, area.warnings == [Warning::WideCut]), (truncated, is_wide), "{given:?}");
            assert_eq!(rectangle(&area), Some(expected), "{given:?}");
        }
    }
}
