//! Why a filter list is not used.

use std::io;

/// Maximum size of a file in bytes. EasyList has two megabytes.
pub(super) const MAX_BYTES: u64 = 32 << 20;

/// Why a list is not used.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// The file cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    /// The file is too large.
    #[error("it has more than {} MB", MAX_BYTES >> 20)]
    TooLarge,
    /// The file is not text.
    #[error("it is not UTF-8 text")]
    NotText,
    /// The file is a web page, as a failed download leaves it.
    #[error("it is a web page, not a list in the syntax of EasyList")]
    WebPage,
    /// The file has no rules.
    #[error("it has no rules in the syntax of EasyList")]
    Empty,
}
