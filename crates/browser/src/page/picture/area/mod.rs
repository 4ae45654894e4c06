//! The part of the page that the image shows: the viewport, the whole page, one element, or a
//! rectangle.

mod capture_area;
mod clip;
mod element;
mod full_page;
mod search;

use chromiumoxide::cdp::browser_protocol::page::Viewport as Clip;
use grabd_domain::capture::Fit;
use serde::Deserialize;

pub(in crate::page) use self::capture_area::CaptureArea;
use self::search::{STATE_TIME, call_script};
use crate::page::context::CaptureContext;
use crate::page::error::CaptureError;
use crate::page::findings::state::PageState;

/// Finds the part of the page that the spec requests and scrolls to load its content. `state` is the state of the
/// settled page.
pub(in crate::page) async fn find(context: &CaptureContext<'_>, state: PageState) -> Result<CaptureArea, CaptureError> {
    match (&context.spec.selector, context.spec.clip) {
        (Some(selector), _) => element::find(context, selector).await,
        (None, Some(clip)) => clip::find(context, clip).await,
        (None, None) if context.spec.full_page => full_page::find(context).await,
        (None, None) => Ok(CaptureArea::viewport(state)),
    }
}

/// Scales the image down to the size that the spec requests. The browser draws the page at that size: text stays sharp,
/// and no image has to be decoded and encoded again.
pub(in crate::page) async fn fit(context: &CaptureContext<'_>, area: CaptureArea) -> Result<CaptureArea, CaptureError> {
    let (fit, scale) = (context.spec.fit, context.spec.scale.factor());
    if fit == Fit::default() {
        return Ok(area);
    }
    let viewport = context.viewport();
    let (visible, width, height) = match &area.clip {
        Some(clip) => (clip.clone(), clip.width * scale, clip.height * scale),
        None => {
            let [width, height] = [viewport.width(), viewport.height()].map(f64::from);
            let found: Option<VisibleArea> = call_script(context, STATE_TIME, "visibleArea", &()).await?;
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
