//! What is drawn over the page for the image: it covers what the caller masks, and outlines what the caller highlights.
//!
//! A mask is for what must not be seen, so that a capture fails if it is not certain that the image has it: if a selector matches
//! nothing, if the page does not answer, and if a masked element is visible after the image was taken.

use chromiumoxide::cdp::browser_protocol::page::Viewport as Clip;
use grabd_domain::capture::Highlight;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::page::context::CaptureContext;
use crate::page::error::CaptureError;

#[derive(Serialize)]
struct PrepareArguments<'a> {
    mask: &'a [String],
}

#[derive(Serialize)]
struct LooksArguments<'a> {
    mask: &'a [String],
    highlight: Vec<Outline<'a>>,
    /// The part of the page that the image shows, or the window.
    area: Option<&'a Clip>,
}

#[derive(Serialize)]
struct Outline<'a> {
    selector: &'a str,
    label: Option<&'a str>,
    color: &'static str,
}

impl<'a> From<&'a Highlight> for Outline<'a> {
    fn from(highlight: &'a Highlight) -> Self {
        let Highlight { selector, label, color } = highlight;
        Self { selector, label: label.as_deref(), color: color.as_str() }
    }
}

#[derive(Deserialize)]
struct BeginResult {
    problem: Option<LooksProblem>,
}

/// A selector that was not applied.
#[derive(Deserialize)]
struct LooksProblem {
    kind: ProblemKind,
    /// The name of the option.
    option: String,
    selector: String,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ProblemKind {
    Invalid,
    Missing,
    Outside,
}

#[derive(Deserialize)]
struct EndResult {
    /// Whether the document is the one that was masked.
    begun: bool,
    /// The number of masked elements that were visible.
    visible: u32,
    /// A selector of a mask that matched nothing any more.
    missing: Option<String>,
}

impl LooksProblem {
    fn into_error(self) -> CaptureError {
        let Self { kind, option, selector } = self;
        CaptureError::failed(match kind {
            ProblemKind::Invalid => format!("`{option}` \"{selector}\" is not a valid CSS selector."),
            ProblemKind::Missing => format!("`{option}` \"{selector}\" matches nothing on the page."),
            ProblemKind::Outside => format!("`{option}` \"{selector}\" matches nothing in the image."),
        })
    }
}

fn is_asked(context: &CaptureContext<'_>) -> bool {
    !context.spec.mask.is_empty() || !context.spec.highlight.is_empty()
}

/// Names what will be masked, before elements are copied for the image: a selector need not match a copy. Returns false if the page
/// does not answer, so that it must not be captured.
pub(in crate::page) async fn prepare(context: &CaptureContext<'_>) -> Result<bool, CaptureError> {
    let mask = &context.spec.mask;
    if mask.is_empty() {
        return Ok(true);
    }
    let prepared: Option<Value> = context.call_script("prepareLooks", &PrepareArguments { mask }).await?;
    Ok(prepared.is_some())
}

/// Masks and outlines what the caller asks for. The image shows `area` of the page, or the window. It is the last step before the
/// image is taken. Returns false if the page does not answer, so that it must not be captured.
///
/// # Errors
/// If a selector is invalid, or matches nothing.
pub(in crate::page) async fn begin(context: &CaptureContext<'_>, area: Option<&Clip>) -> Result<bool, CaptureError> {
    if !is_asked(context) {
        return Ok(true);
    }
    let highlight = context.spec.highlight.iter().map(Outline::from).collect();
    let arguments = LooksArguments { mask: &context.spec.mask, highlight, area };
    match context.call_script::<BeginResult>("beginLooks", &arguments).await? {
        Some(BeginResult { problem: None }) => Ok(true),
        Some(BeginResult { problem: Some(problem) }) => Err(problem.into_error()),
        None => Ok(false),
    }
}

/// Checks after the image was taken that it shows nothing that is masked, and removes what was drawn over the page. Returns false
/// if the page does not answer, or is another one, so that the image must not be used.
///
/// # Errors
/// If a masked element is visible, or a selector matches nothing any more.
pub(in crate::page) async fn end(context: &CaptureContext<'_>) -> Result<bool, CaptureError> {
    if !is_asked(context) {
        return Ok(true);
    }
    match context.call_script::<EndResult>("endLooks", &()).await? {
        None | Some(EndResult { begun: false, .. }) => Ok(false),
        Some(EndResult { visible: 0, missing: None, .. }) => Ok(true),
        Some(EndResult { missing: Some(selector), .. }) => {
            Err(CaptureError::failed(format!("`mask` \"{selector}\" matches nothing on the page.")))
        }
        Some(EndResult { visible, missing: None, .. }) => {
            Err(CaptureError::failed(format!("The page still shows {visible} of the elements that `mask` matches.")))
        }
    }
}
