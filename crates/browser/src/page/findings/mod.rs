//! Reads what the page is and says: its state, its metadata, files about it, and whether it is the requested one.

mod elements;
pub(super) mod extract;
pub(super) mod metadata;
pub(super) mod report;
pub(super) mod state;
pub(super) mod verdict;
