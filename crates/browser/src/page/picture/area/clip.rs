//! Captures a rectangle of the page: scrolls through it, so that its content is loaded.

use std::time::Duration;

use grabd_domain::capture::ClipArea;
use serde::{Deserialize, Serialize};

use super::capture_area::{Bounds, CaptureArea, cut};
use super::search::{STATE_TIME, call_script, end_of_search, left_until};
use crate::page::context::CaptureContext;
use crate::page::error::CaptureError;
use crate::page::findings::state::PageState;
use crate::page::load::settle;
use crate::page::script::millis;

/// The time that passes for content that appears when it is scrolled to.
const APPEAR_TIME: Duration = Duration::from_millis(350);

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ClipArguments {
    x: u32,
    y: u32,
    width: u32,
    height: u32,
    budget_ms: u64,
}

#[derive(Deserialize)]
struct SweepResult {
    /// True if the page was scrolled.
    scrolled: bool,
}

#[derive(Deserialize)]
struct ClipLayout {
    /// The size of the page.
    width: f64,
    height: f64,
    /// The number of frames of other sites in the rectangle that are outside the window.
    frames: u32,
    state: PageState,
}

pub(super) async fn find(context: &CaptureContext<'_>, clip: ClipArea) -> Result<CaptureArea, CaptureError> {
    let _fast = context.clock.draw_fast();
    let until = end_of_search(context);
    let ClipArea { x, y, width, height } = clip;
    let arguments = |budget: Duration| ClipArguments { x, y, width, height, budget_ms: millis(budget) };
    context.tab.watch.reset_irrelevant();
    let swept: Option<SweepResult> =
        call_script(context, left_until(until), "sweepClip", &arguments(left_until(until))).await?;
    let mut is_at_rest = true;
    if swept.is_none_or(|swept| swept.scrolled) {
        is_at_rest = settle::at_rest(context, until).await?;
        is_at_rest &= settle::advance_until_calm(context, until, APPEAR_TIME).await?.is_some();
    }
    let budget = left_until(until).max(STATE_TIME);
    let layout: ClipLayout = call_script(context, budget, "placeClip", &arguments(budget))
        .await?
        .ok_or_else(|| CaptureError::failed("The page does not let `clip` be looked for."))?;
    let [x, y, width, height] = [x, y, width, height].map(f64::from);
    let (width, height) = (width.min(layout.width - x), height.min(layout.height - y));
    if width < 1.0 || height < 1.0 {
        return Err(CaptureError::failed(format!(
            "`clip` is outside the page, which has {} x {} CSS pixels.",
            layout.width.ceil(),
            layout.height.ceil()
        )));
    }
    Ok(CaptureArea {
        state: layout.state,
        unpainted_frames: layout.frames,
        is_incomplete: !is_at_rest,
        ..cut(x, y, width, height, Bounds::of(context))
    })
}
