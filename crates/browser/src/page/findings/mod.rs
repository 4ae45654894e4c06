//! Reads what the page is and says: its state, its metadata, files about it, and whether it is the requested one.

mod elements;
pub(super) mod extract;
mod file_error;
mod har;
pub(super) mod metadata;
mod mhtml;
mod page_text;
mod pdf;
pub(super) mod report;
pub(super) mod secret_filter;
pub(super) mod state;
pub(super) mod verdict;
pub(super) mod vitals;
