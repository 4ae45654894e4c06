//! What is only read, one file for each thing.

pub(crate) mod accounts;
pub(crate) mod days;
pub(crate) mod drift;
pub(crate) mod grabs;
pub(crate) mod holdings;
pub(crate) mod images;
pub(crate) mod ledger;
pub(crate) mod list;
pub(crate) mod oauth;
pub(crate) mod operator;
pub(crate) mod people;
pub(crate) mod teams;
pub(crate) mod usage;
pub(crate) mod webhooks;

use uuid::Uuid;

/// The ids, the last one repeated until their number is a power of two.
///
/// Each number of placeholders is a statement of its own, to be parsed, planned and kept: so there are few.
pub(crate) fn padded(ids: impl Iterator<Item = Uuid>) -> Vec<Uuid> {
    let mut ids: Vec<Uuid> = ids.collect();
    if let Some(last) = ids.last().copied() {
        ids.resize(ids.len().next_power_of_two(), last);
    }
    ids
}
