//! Reads.

pub(crate) mod audit;
pub(crate) mod clock;
pub(crate) mod domains;
pub(crate) mod export;
pub(crate) mod limits;
pub(crate) mod operator;
