//! The audit trail.

use grabd_domain::{Fault, Timestamp};
use grabd_store::audit::AuditEntry;

use super::Operator;
use crate::core::Core;
use crate::faults::internal_error;

/// Entries on a page.
const PAGE: u32 = 50;

/// A page of the audit trail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditPage {
    /// Newest first.
    pub entries: Vec<AuditEntry>,
    /// Cursor of the next, older page; `None` on the last page.
    pub next: Option<i64>,
}

/// A page of the audit trail, newest first, optionally only the entries before a cursor.
///
/// # Errors
/// [`Fault::InternalError`] when the database cannot be read.
pub async fn list_audit(core: &Core, _: &Operator, before: Option<i64>) -> Result<AuditPage, Fault> {
    // One more row shows whether there is another page.
    let listed = core.store.audit().list_audit(Timestamp::from_ms(0), before, PAGE + 1).await;
    let mut entries = listed.map_err(internal_error("operator.list_audit"))?;
    let page = usize::try_from(PAGE).unwrap_or(usize::MAX);
    let has_more = entries.len() > page;
    entries.truncate(page);
    let next = entries.last().filter(|_| has_more).map(|last| last.id);
    Ok(AuditPage { entries, next })
}
