//! When the work on a file ends without a smaller one.

/// The limits of the work on one file.
#[derive(Clone, Copy)]
pub(super) struct Limits<'a> {
    /// The bytes of the largest file that is of use.
    pub(super) max_bytes: usize,
    pub(super) is_stopped: &'a dyn Fn() -> bool,
}

impl Limits<'_> {
    /// Whether the work is to end after this many bytes were written.
    pub(super) fn are_exceeded(self, written: usize) -> bool {
        written > self.max_bytes || (self.is_stopped)()
    }
}
