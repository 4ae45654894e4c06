//! Hides the elements that filter lists name: the places of ads, and their labels.
//!
//! The rules that hold on every page are added as a style sheet, together with those of the page's site. Most rules are for
//! a class or an id: of these, only the ones that occur in the page are added, because a list has thousands of them.

use serde::Serialize;

use crate::blocklists::{Blocklist, PageNames};
use crate::page::context::CaptureContext;
use crate::page::error::CaptureError;

#[derive(Serialize)]
struct HideArguments {
    selectors: Vec<String>,
}

/// The lists of the capture, if the caller blocks content by lists.
pub(super) fn lists<'a>(context: &CaptureContext<'a>) -> Option<&'a Blocklist> {
    context.tab.listener.blocklist().filter(|list| list.has_lists()).map(AsRef::as_ref)
}

/// Hides the elements, if the caller blocks content by lists. Returns whether there were any. It is called again for what
/// was added to the page meanwhile.
///
/// # Errors
/// When the page does not answer.
pub(in crate::page) async fn apply(context: &CaptureContext<'_>) -> Result<bool, CaptureError> {
    let Some(blocklist) = lists(context) else { return Ok(false) };
    let Some(names) = context.call_script::<PageNames>("newNames", &()).await? else { return Ok(false) };
    let selectors = blocklist.hidden_selectors(&names);
    Ok(context.call_script("hideListed", &HideArguments { selectors }).await?.unwrap_or(false))
}
