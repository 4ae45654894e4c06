//! Captures the whole page: scrolls until nothing more is loaded, then arranges the page for one image.

use std::time::Duration;

use grabd_domain::grabs::Warning;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::capture_area::{Bounds, CaptureArea, cut};
use super::search::{STATE_TIME, call_script, end_of_search, left_until};
use crate::page::context::CaptureContext;
use crate::page::error::CaptureError;
use crate::page::findings::state::{Content, PageState};
use crate::page::load::settle;
use crate::page::script::millis;

/// Scroll handlers are often debounced: they run only after scrolling has stopped for a while.
const DEBOUNCE: Duration = Duration::from_millis(350);

/// Consecutive positions that loaded nothing, after which the search stops.
const MAX_FRUITLESS: u32 = 3;

/// How often a page is arranged that requests something because of it.
const MAX_ARRANGEMENTS: u32 = 2;

/// The relative change of height up to which a page counts as unaffected by the window size.
const SAME_HEIGHT: f64 = 0.02;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SweepArguments {
    max_height: u32,
    budget_ms: u64,
}

#[derive(Deserialize)]
struct SweepResult {
    /// True if the end of the page was reached.
    reached: bool,
}

#[derive(Clone, Copy, Deserialize)]
struct SweepEnd {
    /// True if elements were removed from the document while it was scrolled.
    r#virtual: bool,
    height: f64,
}

#[derive(Deserialize)]
struct VisitResult {
    unfilled: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FullPageLayout {
    width: f64,
    height: f64,
    /// The number of frames of other sites outside the window.
    frames: u32,
    /// True if a large box can be scrolled further than the image shows.
    cut: bool,
    /// The number of large areas whose content is hidden.
    hidden_areas: u32,
    /// True if the first screen was another one before the page was scrolled.
    differs: bool,
    state: PageState,
}

impl FullPageLayout {
    fn warnings(&self) -> impl Iterator<Item = Warning> + use<> {
        [
            (self.cut, Warning::ScrollerCut),
            (self.hidden_areas > 0, Warning::AreasBlank(self.hidden_areas)),
            (self.differs, Warning::FirstScreenDiffers),
        ]
        .into_iter()
        .filter_map(|(applies, warning)| applies.then_some(warning))
    }
}

pub(super) async fn find(context: &CaptureContext<'_>) -> Result<CaptureArea, CaptureError> {
    let _fast = context.clock.draw_fast();
    context.tab.watch.reset_irrelevant();
    let sweep = Sweep { context, max_height: Bounds::of(context).height(), until: end_of_search(context) };
    let until = sweep.until;
    let starts = context.tab.watch.read(|seen| seen.starts);
    let _: Option<Value> = sweep.call_script("prepareSweep").await?;
    let grows = sweep.scroll_to_end().await?;
    let mut is_at_rest = settle::at_rest_since(context, until, starts).await?;
    if is_at_rest && sweep.visit_gaps().await? {
        is_at_rest = settle::at_rest_since(context, until, starts).await?;
    }
    let ending: Option<SweepEnd> = sweep.call_script("endSweep").await?;
    let is_virtual = ending.is_some_and(|ending| ending.r#virtual);
    let is_tall = match ending.filter(|_| is_virtual) {
        Some(ending) => sweep.enlarge_window(ending.height).await?,
        None => false,
    };
    let is_filled = !is_virtual || (is_tall && sweep.call_script("isListFilled").await?.unwrap_or(false));
    if !is_filled {
        // Without its rows, the list would be an empty box of its full height.
        let _: Option<Value> = sweep.call_script("undoExpand").await?;
    }
    let has_arrived = context.tab.watch.read(|seen| seen.starts) > starts;
    let time = if has_arrived { settle::ARRIVAL_TIME } else { DEBOUNCE };
    let played = settle::advance_settled(context, until, time).await?;
    is_at_rest &= played.is_some();
    let arranged = sweep.arrange(&mut is_at_rest).await?;
    let viewport = context.viewport();
    let arranged = arranged.unwrap_or_else(|| FullPageLayout {
        width: viewport.width().into(),
        height: viewport.height().into(),
        frames: 0,
        cut: false,
        hidden_areas: 0,
        differs: false,
        state: played.unwrap_or_default(),
    });

    let mut area = cut(0.0, 0.0, arranged.width, arranged.height, Bounds::of(context));
    area.warnings.extend(arranged.warnings());
    area.unpainted_frames = arranged.frames;
    area.state = arranged.state;
    area.is_incomplete = !is_at_rest;
    if grows {
        area.truncated = true;
        area.warnings.push(Warning::Endless);
    }
    if !is_filled {
        area.warnings.push(Warning::VirtualList);
    }
    // The image shows more text than the first screen.
    if area.state.content == Content::Sparse {
        area.state.content = Content::Full;
    }
    Ok(area)
}

struct Sweep<'a> {
    context: &'a CaptureContext<'a>,
    max_height: u32,
    until: Instant,
}

impl Sweep<'_> {
    /// Scrolls to the end, and further while the page grows. Returns whether it still grew when the time was up.
    async fn scroll_to_end(&self) -> Result<bool, CaptureError> {
        let watch = &self.context.tab.watch;
        loop {
            let starts = watch.read(|seen| seen.starts);
            let scrolling = self.context.clock.draw_scrolling();
            let swept: Option<SweepResult> = self.call_script("sweep").await?;
            drop(scrolling);
            let Some(swept) = swept else { return Ok(false) };
            if !swept.reached {
                return Ok(true);
            }
            // Debounced scroll handlers run now.
            let mut has_requests = self.context.clock.advance(DEBOUNCE).await?.has_request;
            has_requests |= watch.read(|seen| seen.starts) > starts;
            if has_requests {
                settle::at_rest_since(self.context, self.until, starts).await?;
            }
            let has_grown = self.call_script("hasGrown").await?.unwrap_or(false);
            if !has_grown || Instant::now() >= self.until {
                return Ok(has_grown);
            }
        }
    }

    /// Scrolls to positions where content seems to be missing and waits there for debounced handlers. Stops if that
    /// loads nothing. Returns whether anything was loaded.
    async fn visit_gaps(&self) -> Result<bool, CaptureError> {
        let watch = &self.context.tab.watch;
        let places: Option<Vec<f64>> = self.call_script("unfilledPlaces").await?;
        let (mut fruitless, mut fruitful) = (0, 0);
        for place in places.into_iter().flatten() {
            if Instant::now() >= self.until || (fruitless == MAX_FRUITLESS && fruitful == 0) {
                break;
            }
            let starts = watch.read(|seen| seen.starts);
            let visit = json!({ "place": place, "maxHeight": self.max_height });
            let before: Option<VisitResult> =
                call_script(self.context, left_until(self.until), "visit", &visit).await?;
            self.context.clock.advance(DEBOUNCE).await?;
            let after: Option<u64> = self.call_script("unfilledCount").await?;
            let has_filled = before.zip(after).is_some_and(|(before, after)| after < before.unfilled);
            if has_filled || watch.read(|seen| seen.starts) > starts {
                fruitful += 1;
            } else {
                fruitless += 1;
            }
        }
        Ok(fruitful > 0)
    }

    /// Arranges the page for one image. What that makes the page request is waited for, and then the page is arranged
    /// again.
    async fn arrange(&self, is_at_rest: &mut bool) -> Result<Option<FullPageLayout>, CaptureError> {
        let watch = &self.context.tab.watch;
        for _ in 0..MAX_ARRANGEMENTS {
            let starts = watch.read(|seen| seen.starts);
            let arranged = self.call_script_within(left_until(self.until).max(STATE_TIME), "arrangeFullPage").await?;
            if watch.read(|seen| seen.starts) == starts || Instant::now() >= self.until {
                return Ok(arranged);
            }
            *is_at_rest &= settle::at_rest_since(self.context, self.until, starts).await?;
            settle::advance_settled(self.context, self.until, DEBOUNCE).await?;
        }
        self.call_script_within(left_until(self.until).max(STATE_TIME), "arrangeFullPage").await
    }

    /// Makes the window as tall as the page: a virtual list then has all of its rows. Returns whether the page kept its
    /// height; if not, the window gets its former size.
    async fn enlarge_window(&self, height: f64) -> Result<bool, CaptureError> {
        let width = self.context.viewport().width();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded just before")]
        let tall = height.ceil().clamp(1.0, f64::from(self.max_height)) as u32;
        let _: Option<Value> = self.call_script("rememberSizes").await?;
        self.resize(width, tall).await?;
        let _: Option<Value> = self.call_script("keepSizes").await?;
        self.context.clock.advance(DEBOUNCE).await?;
        let ending: Option<SweepEnd> = self.call_script("endSweep").await?;
        let is_same = ending.is_some_and(|ending| (ending.height - height).abs() <= height * SAME_HEIGHT);
        if !is_same {
            self.resize(width, self.context.viewport().height()).await?;
            self.context.clock.advance(DEBOUNCE).await?;
        }
        Ok(is_same)
    }

    async fn resize(&self, width: u32, height: u32) -> Result<(), CaptureError> {
        let session = Some(self.context.tab.session.as_str());
        self.context.tab.client.call(session, self.context.metrics(width, height)).await?;
        Ok(())
    }

    async fn call_script<T: serde::de::DeserializeOwned>(&self, function: &str) -> Result<Option<T>, CaptureError> {
        self.call_script_within(left_until(self.until), function).await
    }

    async fn call_script_within<T: serde::de::DeserializeOwned>(
        &self,
        time: Duration,
        function: &str,
    ) -> Result<Option<T>, CaptureError> {
        call_script(
            self.context,
            time,
            function,
            &SweepArguments { max_height: self.max_height, budget_ms: millis(time) },
        )
        .await
    }
}
