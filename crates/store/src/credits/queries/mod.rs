//! Reads.

pub(crate) mod payer;
pub(crate) mod drift;
pub(crate) mod entries;
pub(crate) mod holdings;
