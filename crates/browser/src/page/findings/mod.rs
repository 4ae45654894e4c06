//! Reads what the page is and says: its state, its metadata, files about it, and whether it is the requested one.

pub(super) mod extract;
mod file_error;
pub(super) mod metadata;
mod page_text;
mod pdf;
pub(super) mod report;
pub(super) mod state;
pub(super) mod verdict;
