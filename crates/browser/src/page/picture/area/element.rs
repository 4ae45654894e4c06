//! Captures one element: scrolls to it, checks it and uncovers it.

use std::time::Duration;

use grabd_domain::capture::Selector;
use grabd_domain::grabs::Warning;
use serde::{Deserialize, Serialize};

use super::capture_area::{Bounds, CaptureArea, cut};
use super::search::{STATE_TIME, call_script, end_of_search, left_until};
use crate::page::context::CaptureContext;
use crate::page::error::CaptureError;
use crate::page::findings::state::PageState;
use crate::page::load::settle;
use crate::page::script::millis;
use crate::page::selectors;

/// The time that passes for content that appears when the element is scrolled to.
const APPEAR_TIME: Duration = Duration::from_millis(350);

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SearchArguments<'a> {
    selector: &'a str,
    budget_ms: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FindResult {
    problem: Option<Problem>,
    /// False if the window had shown the whole element before.
    #[serde(default)]
    is_new: bool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum PlaceResult {
    Problem { problem: Problem },
    Box { x: f64, y: f64, width: f64, height: f64, matching: u32, filled: bool, frames: u32, state: PageState },
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Problem {
    Invalid,
    Missing,
    Hidden,
}

impl Problem {
    fn into_error(self, selector: &str) -> CaptureError {
        CaptureError::failed(match self {
            Self::Invalid => format!("`selector` \"{selector}\" is not a valid CSS selector."),
            Self::Missing => format!("`selector` \"{selector}\" matches nothing on the page."),
            Self::Hidden => format!("The element that `selector` \"{selector}\" matches is not visible."),
        })
    }
}

pub(super) async fn find(context: &CaptureContext<'_>, selector: &Selector) -> Result<CaptureArea, CaptureError> {
    let _fast = context.clock.draw_fast();
    let (selector, watch) = (selector.as_str(), &context.tab.watch);
    let until = end_of_search(context);
    let not_searchable =
        || CaptureError::failed(format!("The page does not let `selector` \"{selector}\" be looked for."));
    watch.reset_irrelevant();
    selectors::prepare(context, selector).await?;
    let starts = watch.read(|seen| seen.starts);
    let search = SearchArguments { selector, budget_ms: millis(left_until(until)) };
    let found: FindResult =
        call_script(context, left_until(until), "findElement", &search).await?.ok_or_else(not_searchable)?;
    if let Some(problem) = found.problem {
        return Err(problem.into_error(selector));
    }
    let mut is_at_rest = settle::at_rest_since(context, until, starts).await?;
    if found.is_new {
        is_at_rest &= settle::advance_settled(context, until, APPEAR_TIME).await?.is_some();
    }
    let search = SearchArguments { selector, budget_ms: millis(left_until(until).max(STATE_TIME)) };
    let placed = call_script(context, left_until(until) + STATE_TIME, "placeElement", &search)
        .await?
        .ok_or_else(not_searchable)?;
    match placed {
        PlaceResult::Problem { problem } => Err(problem.into_error(selector)),
        PlaceResult::Box { x, y, width, height, matching, filled, frames, state } => {
            let padding = f64::from(context.spec.padding);
            // The page has no content left of it or above it.
            let (left, top) = ((x - padding).max(0.0), (y - padding).max(0.0));
            let (width, height) = (x + width + padding - left, y + height + padding - top);
            let mut area = cut(left, top, width, height, Bounds::of(context));
            if matching > 1 {
                area.warnings.push(Warning::SelectorMany(matching));
            }
            Ok(CaptureArea {
                state,
                is_incomplete: !is_at_rest,
                unpainted_frames: frames,
                may_be_plain: !filled,
                ..area
            })
        }
    }
}
