//! Reads.

pub(crate) mod creator;
pub(crate) mod days;
pub(crate) mod export;
pub(crate) mod find;
pub(crate) mod find_one;
pub(crate) mod list;
pub(crate) mod specs;
pub(crate) mod storage;
pub(crate) mod stored_files;
pub(crate) mod usage;
