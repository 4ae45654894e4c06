//! Live grabs that failed, whosever they are.

use grabd_domain::Fault;
use grabd_store::{Failed, FailedAt};

use super::Operator;
use crate::core::{Core, inside};

/// Failures on a page.
const PAGE: u32 = 50;

/// One page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailuresPage {
    /// The latest first.
    pub failures: Vec<Failed>,
    /// What to call for the next, earlier page with; `None` on the last one.
    pub next: Option<FailedAt>,
}

/// A page of failures, the latest first: those before a place, when it is given.
///
/// # Errors
/// [`Fault::InternalError`] when the database cannot be read.
pub async fn list_failures(core: &Core, _: &Operator, before: Option<FailedAt>) -> Result<FailuresPage, Fault> {
    // One more than is shown tells whether there are more.
    let mut failures = core.store.list_failed(before, PAGE + 1).await.map_err(inside("operator.list_failures"))?;
    let page = usize::try_from(PAGE).unwrap_or(usize::MAX);
    let has_more = failures.len() > page;
    failures.truncate(page);
    let next = failures.last().filter(|_| has_more).map(|last| FailedAt { at: last.finished_at, grab: last.grab });
    Ok(FailuresPage { failures, next })
}
