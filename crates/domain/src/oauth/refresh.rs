//! What a refresh token means that was used before: an answer that got lost, or a theft.

use std::time::Duration;

use crate::Timestamp;

/// How often one refresh token may be used again. A client that loses answers, or runs as several processes, needs a few;
/// each leaves another pair of tokens behind.
pub const MAX_SIBLINGS: u32 = 3;

/// What is known of a refresh token that was exchanged before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retired {
    /// When it was.
    pub at: Timestamp,
    /// How often it was used again since.
    pub siblings: u32,
    /// Has one of those that came of it been exchanged itself? Then its owner has got that answer, and has moved on.
    pub succeeded: bool,
}

/// What is to be done about a refresh token that was presented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presented {
    /// It is exchanged, and retires.
    First,
    /// It was exchanged a moment ago, and gets another pair.
    Sibling,
    /// Two parties have it: everything that came of the consent ends.
    Reuse,
}

/// Judges a refresh token. With a grace of zero, every second use is a reuse. Within the grace a thief who is quick gets
/// tokens too, and is noticed only when both parties go on with the same one.
pub fn judge(retired: Option<Retired>, now: Timestamp, grace: Duration) -> Presented {
    match retired {
        None => Presented::First,
        Some(Retired { at, siblings, succeeded }) => {
            let in_time = now.since(at) < grace;
            if in_time && !succeeded && siblings < MAX_SIBLINGS { Presented::Sibling } else { Presented::Reuse }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_use_is_forgiven_soon_after_and_not_too_often() {
        const AT: Timestamp = Timestamp::from_ms(1_000_000);
        let grace = Duration::from_secs(30);
        let retired = |siblings, succeeded| Some(Retired { at: AT, siblings, succeeded });
        for (retired, after_ms, grace, expected) in [
            (None, 0, grace, Presented::First),
            (None, 0, Duration::ZERO, Presented::First),
            (retired(0, false), 0, grace, Presented::Sibling),
            (retired(0, false), 29_999, grace, Presented::Sibling),
            (retired(0, false), 30_000, grace, Presented::Reuse),
            (retired(2, false), 1, grace, Presented::Sibling),
            (retired(3, false), 1, grace, Presented::Reuse),
            (retired(0, true), 1, grace, Presented::Reuse),
            (retired(0, false), 0, Duration::ZERO, Presented::Reuse),
            (retired(0, false), 1, Duration::ZERO, Presented::Reuse),
        ] {
            let now = AT + Duration::from_millis(after_ms);
            assert_eq!(judge(retired, now, grace), expected, "{retired:?} {after_ms} {grace:?}");
        }
    }
}
