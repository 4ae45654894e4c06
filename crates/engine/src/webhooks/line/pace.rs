//! How endpoints responded.

use std::time::Duration;

/// An attempt that has not ended by then leaves the pool of quick endpoints, so that others are sent.
pub(crate) const QUICK_LIMIT: Duration = Duration::from_secs(2);
/// A failure without a response that took longer than this counts as silence: a name that cannot be resolved, or a host that
/// drops packets.
const QUICK_FAILURE: Duration = Duration::from_millis(500);

/// How an endpoint responded to its last attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Pace {
    /// Not known: none was made for some time.
    Unknown,
    /// Within [`QUICK_LIMIT`], with a success or a failure.
    Quick,
    /// Later, but within the time limit.
    Late,
    /// Not at all.
    Silent,
}

impl Pace {
    pub(crate) const ALL: [Self; 4] = [Self::Quick, Self::Unknown, Self::Late, Self::Silent];

    /// The pace of an endpoint that responded after this time.
    pub(crate) fn of_response(took: Duration) -> Self {
        if took <= QUICK_LIMIT { Self::Quick } else { Self::Late }
    }

    /// The pace of an endpoint with which an attempt failed after this time, without a response.
    pub(crate) fn of_failure(took: Duration) -> Self {
        if took <= QUICK_FAILURE { Self::Quick } else { Self::Silent }
    }
}
