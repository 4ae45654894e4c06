//! Reads.

pub(crate) mod balance;
pub(crate) mod drift;
pub(crate) mod entries;
pub(crate) mod holdings;
pub(crate) mod payer;
