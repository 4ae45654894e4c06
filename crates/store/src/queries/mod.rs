//! Read-only queries.

pub(crate) mod account;
pub(crate) mod accounts;
pub(crate) mod audit;
pub(crate) mod clock;
pub(crate) mod days;
pub(crate) mod domains;
pub(crate) mod drift;
pub(crate) mod export;
pub(crate) mod grabs;
pub(crate) mod holdings;
pub(crate) mod images;
pub(crate) mod key_usage;
pub(crate) mod ledger;
pub(crate) mod links;
pub(crate) mod list;
pub(crate) mod oauth;
pub(crate) mod operator;
pub(crate) mod people;
pub(crate) mod teams;
pub(crate) mod usage;
pub(crate) mod webhooks;

use uuid::Uuid;

/// Pads the ids to a power of two by repeating the last one.
///
/// Every number of bind parameters is a different statement to parse, plan and cache, so padding keeps them few.
pub(crate) fn padded(ids: impl Iterator<Item = Uuid>) -> Vec<Uuid> {
    let mut ids: Vec<Uuid> = ids.collect();
    if let Some(last) = ids.last().copied() {
        ids.resize(ids.len().next_power_of_two(), last);
    }
    ids
}
