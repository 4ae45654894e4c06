//! The part of the page to capture, within the maximum size of an image.

use chromiumoxide::cdp::browser_protocol::page::Viewport as Clip;
use grabd_domain::capture::Format;
use grabd_domain::grabs::Warning;

use crate::page::context::CaptureContext;
use crate::page::findings::state::PageState;

/// The widest viewport. It limits the area, and with it the memory, of one image.
const MAX_WIDTH: u32 = 1920;

/// The limit of the encoder, beyond which it returns nothing.
const WEBP_MAX: u32 = 16_383;

/// The part of the page to capture.
#[derive(Clone, Debug, Default)]
pub(in crate::page) struct CaptureArea {
    /// The rectangle on the page. The viewport if `None`.
    pub(in crate::page) clip: Option<Clip>,
    /// True if something was cut off.
    pub(in crate::page) truncated: bool,
    /// True if the time ended before all content was loaded.
    pub(in crate::page) is_incomplete: bool,
    /// True for an element that shows nothing by itself but its background.
    pub(in crate::page) may_be_plain: bool,
    /// The number of frames of other sites in it that are outside the window, where the browser does not paint them.
    pub(in crate::page) unpainted_frames: u32,
    /// The current state of the page.
    pub(in crate::page) state: PageState,
    /// Warnings about this part of the page.
    pub(in crate::page) warnings: Vec<Warning>,
}

impl CaptureArea {
    /// The viewport.
    pub(super) fn viewport(state: PageState) -> Self {
        Self { state, ..Self::default() }
    }
}

/// The maximum size of an image.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    /// The longest side in image pixels. The area is limited to that of a full page of the widest viewport.
    pixels: u32,
    scale: f64,
    /// The caller's height limit of a full page, in CSS pixels.
    max_height: Option<u32>,
}

impl Bounds {
    pub(super) fn of(context: &CaptureContext<'_>) -> Self {
        let full_page_max = context.limits.full_page_max_height;
        let pixels = match context.spec.format {
            Format::Png | Format::Jpeg => full_page_max,
            Format::Webp => full_page_max.min(WEBP_MAX),
        };
        Self { pixels, scale: context.spec.scale.factor(), max_height: context.spec.max_height }
    }

    /// The longest side in CSS pixels.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a scale is at least 1")]
    fn side(self) -> u32 {
        (f64::from(self.pixels) / self.scale).floor() as u32
    }

    /// The largest height in CSS pixels.
    pub(super) fn height(self) -> u32 {
        self.side().min(self.max_height.unwrap_or(u32::MAX))
    }

    /// The largest area in CSS pixels.
    fn area(self) -> f64 {
        f64::from(self.pixels) * f64::from(MAX_WIDTH) / (self.scale * self.scale)
    }
}

/// Rounds a rectangle to whole pixels, as the browser paints it, and cuts it to the bounds.
pub(super) fn cut(x: f64, y: f64, width: f64, height: f64, bounds: Bounds) -> CaptureArea {
    let (left, top) = (x.round().max(0.0), y.round().max(0.0));
    let (right, bottom) = ((x + width).round().max(left + 1.0), (y + height).round().max(top + 1.0));
    let width = (right - left).min(bounds.side().into());
    let height = (bottom - top).min(bounds.height().into()).min((bounds.area() / width).floor());
    let is_narrower = right - left > width;
    let clip = Some(Clip { x: left, y: top, width, height, scale: 1.0 });
    let warnings = if is_narrower { vec![Warning::WideCut] } else { Vec::new() };
    CaptureArea { clip, truncated: is_narrower || bottom - top > height, warnings, ..CaptureArea::default() }
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
