//! Reuse of refresh tokens: a retry after a lost response, or theft.

use std::time::Duration;

use crate::Timestamp;

/// How often a used refresh token can be exchanged again. Clients that lose responses or run as several processes need
/// a few retries. Each issues another pair of tokens.
pub const MAX_REFRESH_RETRIES: u32 = 3;

/// Previous use of a refresh token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreviousUse {
    /// Time of the first exchange.
    pub at: Timestamp,
    /// Number of retries since then.
    pub retries: u32,
    /// Whether a token issued from it was exchanged. Then the client received that response and does not need a retry.
    pub succeeded: bool,
}

/// Classification of a presented refresh token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefreshUse {
    /// First use: exchange it.
    First,
    /// Retry within the grace period: issue another pair of tokens.
    Retry,
    /// Reuse, so two parties have the token: revoke the grant.
    Reuse,
}

/// Classifies the use of a refresh token. With a grace period of zero, every second use is reuse. A thief who uses a
/// token within the grace period gets tokens too, and is detected only when both parties later use the same token.
pub fn classify_refresh(previous: Option<PreviousUse>, now: Timestamp, grace: Duration) -> RefreshUse {
    match previous {
        None => RefreshUse::First,
        Some(PreviousUse { at, retries, succeeded }) => {
            let in_time = now.since(at) < grace;
            if in_time && !succeeded && retries < MAX_REFRESH_RETRIES { RefreshUse::Retry } else { RefreshUse::Reuse }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reuse_is_a_retry_within_grace_and_retry_limit() {
        const AT: Timestamp = Timestamp::from_ms(1_000_000);
        let grace = Duration::from_secs(30);
        let used = |retries, succeeded| Some(PreviousUse { at: AT, retries, succeeded });
        for (previous, after_ms, grace, expected) in [
            (None, 0, grace, RefreshUse::First),
            (None, 0, Duration::ZERO, RefreshUse::First),
            (used(0, false), 0, grace, RefreshUse::Retry),
            (used(0, false), 29_999, grace, RefreshUse::Retry),
            (used(0, false), 30_000, grace, RefreshUse::Reuse),
            (used(2, false), 1, grace, RefreshUse::Retry),
            (used(3, false), 1, grace, RefreshUse::Reuse),
            (used(0, true), 1, grace, RefreshUse::Reuse),
            (used(0, false), 0, Duration::ZERO, RefreshUse::Reuse),
            (used(0, false), 1, Duration::ZERO, RefreshUse::Reuse),
        ] {
            let now = AT + Duration::from_millis(after_ms);
            assert_eq!(classify_refresh(previous, now, grace), expected, "{previous:?} {after_ms} {grace:?}");
        }
    }
}
