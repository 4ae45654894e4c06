//! What is drawn over the page for the image: it covers what the caller masks.
//!
//! A mask is for what must not be seen, so that a capture fails if it is not certain that the image has it: if a selector matches
//! nothing, if the page does not answer, and if a masked element is visible after the image was taken.

use serde::{Deserialize, Serialize};

use crate::page::context::CaptureContext;
use crate::page::error::CaptureError;

#[derive(Serialize)]
struct LooksArguments<'a> {
    mask: &'a [String],
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
}

#[derive(Deserialize)]
struct EndResult {
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
        })
    }
}

fn is_asked(context: &CaptureContext<'_>) -> bool {
    !context.spec.mask.is_empty()
}

/// Masks what the caller asks for. It is the last step before the image is taken.
///
/// # Errors
/// If a selector is invalid or matches nothing, and if the page does not answer.
pub(in crate::page) async fn begin(context: &CaptureContext<'_>) -> Result<(), CaptureError> {
    if !is_asked(context) {
        return Ok(());
    }
    let arguments = LooksArguments { mask: &context.spec.mask };
    match context.call_script::<BeginResult>("beginLooks", &arguments).await? {
        Some(BeginResult { problem: None }) => Ok(()),
        Some(BeginResult { problem: Some(problem) }) => Err(problem.into_error()),
        None => Err(CaptureError::failed("The page does not let `mask` be applied.")),
    }
}

/// Checks after the image was taken that it shows nothing that is masked, and removes what was drawn over the page. Returns false
/// if the page does not answer, so that the image must not be used.
///
/// # Errors
/// If a masked element is visible, or a selector matches nothing any more.
pub(in crate::page) async fn end(context: &CaptureContext<'_>) -> Result<bool, CaptureError> {
    if !is_asked(context) {
        return Ok(true);
    }
    match context.call_script::<EndResult>("endLooks", &()).await? {
        None => Ok(false),
        Some(EndResult { visible: 0, missing: None }) => Ok(true),
        Some(EndResult { missing: Some(selector), .. }) => {
            Err(CaptureError::failed(format!("`mask` \"{selector}\" matches nothing on the page.")))
        }
        Some(EndResult { visible, missing: None }) => {
            Err(CaptureError::failed(format!("The page still shows {visible} of the elements that `mask` matches.")))
        }
    }
}
