//! Why a link is refused, for people.

use std::fmt;

use crate::timestamp::Timestamp;

/// Why a link opens nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkRefusal {
    /// There is no signature, it does not match, or its key is unknown or revoked. Which of them is not told.
    Signature,
    /// The link has expired.
    Expired(Timestamp),
}

impl fmt::Display for LinkRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signature => f.write_str(
                "The link is not signed, its signature does not match, or its key does not exist or was revoked.",
            ),
            Self::Expired(at) => write!(f, "The link expired at {at}."),
        }
    }
}
