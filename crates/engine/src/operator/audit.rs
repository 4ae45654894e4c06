//! The audit trail.

use grabd_domain::Timestamp;
use grabd_store::audit::AuditEntry;

use super::Operator;
use crate::error::Error;
use crate::service::Core;

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
/// When the database cannot be read.
#[tracing::instrument(name = "operator.list_audit", skip_all)]
pub async fn list_audit(core: &Core, _: &Operator, before: Option<i64>) -> Result<AuditPage, Error> {
    // One more row shows whether there is another page.
    let listed = core.store.audit().list_audit(Timestamp::from_ms(0), before, PAGE + 1).await;
    let mut entries = listed?;
    let page = usize::try_from(PAGE).unwrap_or(usize::MAX);
    let has_more = entries.len() > page;
    entries.truncate(page);
    let next = entries.last().filter(|_| has_more).map(|last| last.id);
    Ok(AuditPage { entries, next })
}
