//! How a page ends before its capture.

/// A limit that a page exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Excess {
    /// Bytes of responses or events.
    Bytes,
    /// The number of workers.
    Workers,
}

/// How a page ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gone {
    /// Its process died.
    Crashed,
    /// It was closed.
    Closed,
}
