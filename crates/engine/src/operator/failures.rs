//! Failed live grabs of all teams.

use grabd_store::operator::{FailedGrab, FailureCursor};

use super::Operator;
use crate::error::Error;
use crate::service::Core;

/// Failures on a page.
const PAGE: u32 = 50;

/// A page of failed grabs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailuresPage {
    /// Latest first.
    pub failures: Vec<FailedGrab>,
    /// Cursor of the next, earlier page; `None` on the last page.
    pub next: Option<FailureCursor>,
}

/// A page of failed grabs, latest first, optionally only those before a cursor.
///
/// # Errors
/// When the database cannot be read.
#[tracing::instrument(name = "operator.list_failures", skip_all)]
pub async fn list_failures(core: &Core, _: &Operator, before: Option<FailureCursor>) -> Result<FailuresPage, Error> {
    // One more row shows whether there is another page.
    let mut failures = core.store.operator().list_failed(before, PAGE + 1).await?;
    let page = usize::try_from(PAGE).unwrap_or(usize::MAX);
    let has_more = failures.len() > page;
    failures.truncate(page);
    let next = failures.last().filter(|_| has_more).map(|last| FailureCursor { at: last.finished_at, grab: last.grab });
    Ok(FailuresPage { failures, next })
}
