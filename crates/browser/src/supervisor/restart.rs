//! When and why a browser is replaced.

use std::time::Duration;

/// Why a browser is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum RestartReason {
    /// Its process ended or its pipe was closed.
    Died,
    /// It does not answer or does not draw.
    Hung,
    /// Its only page used more than a capture may, crashed, or could not be disposed of in time.
    Excess,
    /// A tab could not be created or disposed of.
    Stuck,
    /// It reached its maximum number of grabs.
    Grabs,
    /// It reached its maximum age.
    Age,
    /// It uses too much memory.
    Memory,
}

/// The limits at which a browser is replaced.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecyclePolicy {
    pub(super) grabs: u32,
    pub(super) age: Duration,
    pub(super) rss_bytes: u64,
    /// A hard limit: the page that exceeds it is ended.
    pub(super) memory_limit_bytes: u64,
}

impl RestartReason {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Died => "died",
            Self::Hung => "hung",
            Self::Excess => "excess",
            Self::Stuck => "stuck",
            Self::Grabs => "grabs",
            Self::Age => "age",
            Self::Memory => "memory",
        }
    }

    /// Returns true if the browser still works and its grabs may finish.
    pub(super) fn may_finish(self) -> bool {
        match self {
            Self::Died | Self::Hung | Self::Excess => false,
            Self::Stuck | Self::Grabs | Self::Age | Self::Memory => true,
        }
    }
}
