//! What comparisons of files have found.

use super::element_changes::ElementChange;
use super::text_changes::TextChange;

/// What a comparison of two files has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileResult<T> {
    /// Both were compared. The file has changed if there are changes.
    Compared(Vec<T>),
    /// The baseline has no such file: it was captured before these files were compared, or its files were deleted.
    NoBaseline,
    /// One of them could not be read in time.
    Unread,
}

/// What the comparisons of a run have found. `None`: there was none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileResults {
    /// For the texts.
    pub texts: Option<FileResult<TextChange>>,
    /// For the elements.
    pub elements: Option<FileResult<ElementChange>>,
}
