//! One file for each table. Private: what leaves the crate are domain types.

pub(crate) mod api_key;
pub(crate) mod delivery;
pub(crate) mod grab;
pub(crate) mod idem;
pub(crate) mod image_gc;
pub(crate) mod job;
pub(crate) mod ledger;
pub(crate) mod lot;
pub(crate) mod team;
pub(crate) mod webhook_endpoint;
