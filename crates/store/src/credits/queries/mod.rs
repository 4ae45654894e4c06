//! Reads.

pub(crate) mod account;
pub(crate) mod drift;
pub(crate) mod entries;
pub(crate) mod holdings;
