//! What part of the page the picture shows: the viewport, the whole page, or one element.

use std::time::Duration;

use chromiumoxide::cdp::browser_protocol::page::Viewport as Clip;
use grabd_domain::capture::{Format, Selector};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::drive::Drive;
use super::{Ended, script};
use crate::cdp::CallError;

const FULL_PAGE: &str = include_str!("full_page.js");
const SELECTOR: &str = include_str!("selector.js");

/// The widest viewport: a larger area than its width times the greatest height is more memory than one picture is worth.
const MAX_WIDTH: u32 = 1920;

/// The encoder's own limit, beyond which it returns nothing.
const WEBP_MAX: u32 = 16_383;

/// A script may outlast the time it was given by this much before it counts as stuck.
const GRACE: Duration = Duration::from_secs(1);

/// What to capture.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Frame {
    /// A part of the page; the viewport when absent.
    pub(super) clip: Option<Clip>,
    /// Was something cut off?
    pub(super) truncated: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FullPage {
    budget_ms: u64,
    max_height: u32,
}

#[derive(Deserialize)]
struct Page {
    height: f64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Search<'a> {
    selector: &'a str,
    budget_ms: u64,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Found {
    Problem { problem: Problem },
    Box { x: f64, y: f64, width: f64, height: f64 },
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Problem {
    Invalid,
    Missing,
    Hidden,
}

/// Finds what the spec asks for, bringing in what must be scrolled to.
pub(super) async fn find(drive: &Drive<'_>) -> Result<Frame, Ended> {
    match &drive.spec.selector {
        Some(selector) => element(drive, selector).await,
        None if drive.spec.full_page => whole(drive).await,
        None => Ok(Frame::default()),
    }
}

async fn whole(drive: &Drive<'_>) -> Result<Frame, Ended> {
    let most = most(drive);
    let budget = budget(drive);
    let arguments = FullPage { budget_ms: millis(budget), max_height: most };
    let page: Option<Page> = ask(drive, budget, FULL_PAGE, &arguments).await?;
    let page = page.unwrap_or(Page { height: drive.spec.viewport.height().into() });
    Ok(cut(0.0, 0.0, drive.spec.viewport.width().into(), page.height, most))
}

async fn element(drive: &Drive<'_>, selector: &Selector) -> Result<Frame, Ended> {
    let text = selector.as_str();
    let budget = budget(drive);
    let search = Search { selector: text, budget_ms: millis(budget) };
    match ask(drive, budget, SELECTOR, &search).await? {
        Some(Found::Box { x, y, width, height }) => Ok(cut(x, y, width, height, most(drive))),
        Some(Found::Problem { problem }) => Err(Ended::failed(match problem {
            Problem::Invalid => format!("`selector` \"{text}\" is not a valid CSS selector."),
            Problem::Missing => format!("`selector` \"{text}\" matches nothing on the page."),
            Problem::Hidden => format!("The element that `selector` \"{text}\" matches is not visible."),
        })),
        None => Err(Ended::failed(format!("The page does not let `selector` \"{text}\" be looked for."))),
    }
}

/// What a script found. None also when its document went away under it, which whoever waits for this sees by itself.
async fn ask<T: DeserializeOwned>(
    drive: &Drive<'_>,
    budget: Duration,
    function: &str,
    arguments: &impl Serialize,
) -> Result<Option<T>, Ended> {
    match script::call(drive.tab, budget + GRACE, function, arguments).await {
        Err(CallError::Refused { message, .. }) => {
            tracing::debug!(message, "the page's script ended early");
            Ok(None)
        }
        answer => Ok(answer?),
    }
}

/// A rectangle on whole pixels, no side longer than `most`, and no larger than the largest whole page.
fn cut(x: f64, y: f64, width: f64, height: f64, most: u32) -> Frame {
    let (left, top) = (x.floor().max(0.0), y.floor().max(0.0));
    let (right, bottom) = ((x + width).ceil().max(left + 1.0), (y + height).ceil().max(top + 1.0));
    let width = (right - left).min(most.into());
    let height = (bottom - top).min(most.into()).min((f64::from(most) * f64::from(MAX_WIDTH) / width).floor());
    let truncated = right - left > width || bottom - top > height;
    Frame { clip: Some(Clip { x: left, y: top, width, height, scale: 1.0 }), truncated }
}

fn most(drive: &Drive<'_>) -> u32 {
    match drive.spec.format {
        Format::Png | Format::Jpeg => drive.limits.full_page_max_height,
        Format::Webp => drive.limits.full_page_max_height.min(WEBP_MAX),
    }
}

/// Time for scrolling and searching: another settle budget at most.
fn budget(drive: &Drive<'_>) -> Duration {
    drive.limits.settle_budget.min(drive.shoot_by.saturating_duration_since(tokio::time::Instant::now()))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rectangles_lie_on_pixels_and_end_at_the_limit() {
        let rectangle = |frame: Frame| frame.clip.map(|clip| (clip.x, clip.y, clip.width, clip.height)).unwrap();
        for (given, expected, truncated) in [
            ((10.0, 20.0, 30.0, 40.0), (10.0, 20.0, 30.0, 40.0), false),
            ((10.4, 20.6, 30.2, 40.2), (10.0, 20.0, 31.0, 41.0), false),
            ((-5.0, -5.0, 20.0, 20.0), (0.0, 0.0, 15.0, 15.0), false),
            ((0.0, 0.0, 0.2, 0.2), (0.0, 0.0, 1.0, 1.0), false),
            ((0.0, 0.0, 50.0, 101.0), (0.0, 0.0, 50.0, 100.0), true),
            ((0.0, 0.0, 101.0, 50.0), (0.0, 0.0, 100.0, 50.0), true),
        ] {
            let frame = cut(given.0, given.1, given.2, given.3, 100);
            assert_eq!(frame.truncated, truncated, "{given:?}");
            assert_eq!(rectangle(frame), expected, "{given:?}");
        }
    }
}
