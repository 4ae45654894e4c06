//! Pages of the audit trail.

use grabd_store::Store;
use grabd_store::audit::{AuditFilter, NamedEntry};

use crate::error::Error;

/// Entries on a page.
const PAGE: u32 = 50;

/// A page of the audit trail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrailPage {
    /// Newest first.
    pub entries: Vec<NamedEntry>,
    /// Cursor of the next, older page; `None` on the last page.
    pub next: Option<i64>,
}

/// A page of the entries that match, newest first, optionally only those before a cursor.
pub(crate) async fn page(store: &Store, filter: &AuditFilter, before: Option<i64>) -> Result<TrailPage, Error> {
    // One more row shows whether there is another page.
    let mut entries = store.audit().search(filter, before, PAGE + 1).await?;
    let page = usize::try_from(PAGE).unwrap_or(usize::MAX);
    let has_more = entries.len() > page;
    entries.truncate(page);
    let next = entries.last().filter(|_| has_more).map(|last| last.entry.id);
    Ok(TrailPage { entries, next })
}
