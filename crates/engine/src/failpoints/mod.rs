//! Failpoints: named steps at which a test can abort the process, hang, inject an error, or lose a lease.
//!
//! A kill at a random time rarely falls between two steps, hence named steps. They exist in builds with debug
//! assertions, which tests use anyway, so nothing is compiled twice. To add one: add a variant to [`Step`], its name to
//! `STEPS`, and a call of [`reach`].
//!
//! *Invariant:* release builds have no failpoints: without debug assertions nothing can be armed, and [`reach`] does
//! nothing.

mod reach;

#[cfg(debug_assertions)]
use grabd_domain::ids::GrabId;

pub(crate) use reach::{polls, reach};

/// A step of processing a grab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A create was committed; no one has been notified.
    Created,
    /// An assignment was sent to a renderer.
    Assigned,
    /// A render was reported; nothing is stored yet.
    Rendered,
    /// The image file is stored; the grab is still open.
    Stored,
    /// The grab is done or failed; no one has been notified.
    Completed,
    /// A job is about to be released.
    Releasing,
    /// At startup, a batch of leases of an earlier process was released.
    TakingOver,
    /// The run of a monitor was written; its grab is not created.
    RunClaimed,
    /// The grab of a run was created; the run does not name it.
    RunCreated,
    /// The grab of a run has ended; nothing follows from it yet.
    RunEnded,
    /// A run was finished; no mail was sent.
    RunFinished,
    /// A site job was leased; its step has not begun.
    SiteLeased,
    /// The capture of a page of a site was noted; its grab is not created.
    PageStarted,
    /// The grab of a page was created; the page does not name it.
    PageCreated,
    /// The grab of a page has ended; its result is not stored.
    PageEnded,
}

/// The armed failpoints. Empty except in tests.
#[derive(Debug, Default)]
pub struct Failpoints {
    #[cfg(debug_assertions)]
    armed: Vec<armed::Failpoint>,
    /// Whether the queue and the watched grabs are not polled, so that only hints tell of changes.
    #[cfg(debug_assertions)]
    without_polls: bool,
}

#[cfg(debug_assertions)]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use super::{Failpoints, GrabId, Step};

    const STEPS: [(&str, Step); 15] = [
        ("created", Step::Created),
        ("assigned", Step::Assigned),
        ("rendered", Step::Rendered),
        ("stored", Step::Stored),
        ("completed", Step::Completed),
        ("releasing", Step::Releasing),
        ("taking_over", Step::TakingOver),
        ("run_claimed", Step::RunClaimed),
        ("run_created", Step::RunCreated),
        ("run_ended", Step::RunEnded),
        ("run_finished", Step::RunFinished),
        ("site_leased", Step::SiteLeased),
        ("page_started", Step::PageStarted),
        ("page_created", Step::PageCreated),
        ("page_ended", Step::PageEnded),
    ];

    /// The entry that ends polls.
    const POLLS_OFF: &str = "polls=off";

    #[derive(Debug)]
    pub(super) struct Failpoint {
        pub(super) step: Step,
        pub(super) action: Action,
        /// Remaining passes until it fires, including the one at which it fires. It fires once.
        remaining: AtomicU32,
        /// Index of the failpoint that must fire first. Only passes of the grab it fired for are counted then.
        after: Option<usize>,
        /// The grab it fired for.
        fired_for: OnceLock<Option<GrabId>>,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Action {
        /// Abort the process, as if it were killed.
        Abort,
        /// Return an error, as if the response of the database were lost.
        Error,
        /// Release the lease, as the sweep does with an expired one, and continue.
        Lose,
        /// Hang for the given time. A shutdown does not interrupt it, as with a real hang.
        Sleep(Duration),
    }

    /// The failpoint specification is invalid.
    #[derive(Debug, thiserror::Error)]
    #[error("{0:?} is not step=action@turn with an action of abort, error, lose or milliseconds to sleep")]
    pub struct ParseError(String);

    impl Failpoints {
        /// Parses a comma-separated list of `step=action@turn`. The turn defaults to 1. In `first>second`, the second
        /// failpoint fires only after the first, and for the same grab. `polls=off` ends the polls of the queue and of
        /// watched grabs.
        ///
        /// # Errors
        /// The first entry that is invalid.
        pub fn parse(text: &str) -> Result<Self, ParseError> {
            let mut armed = Vec::new();
            let without_polls = text.split(',').any(|entry| entry == POLLS_OFF);
            for chain in text.split(',').filter(|chain| !chain.is_empty() && *chain != POLLS_OFF) {
                let mut after = None;
                for part in chain.split('>') {
                    armed.push(Failpoint::parse(part, after).ok_or_else(|| ParseError(part.to_owned()))?);
                    after = Some(armed.len() - 1);
                }
            }
            Ok(Self { armed, without_polls })
        }

        /// Counts a pass of `step` and returns the failpoint that fires at it.
        pub(super) fn fire(&self, step: Step, grab: Option<GrabId>) -> Option<&Failpoint> {
            let is_its_turn = |failpoint: &&Failpoint| match failpoint.after.and_then(|first| self.armed.get(first)) {
                Some(first) => grab.is_some() && first.fired_for.get() == Some(&grab) && failpoint.count_pass(step),
                None => failpoint.count_pass(step),
            };
            let failpoint = self.armed.iter().find(is_its_turn)?;
            // A failpoint fires once, so this is the first write.
            failpoint.fired_for.set(grab).ok()?;
            Some(failpoint)
        }
    }

    impl Failpoint {
        fn parse(text: &str, after: Option<usize>) -> Option<Self> {
            let (name, rest) = text.split_once('=')?;
            let (action, turn) = rest.split_once('@').unwrap_or((rest, "1"));
            let (_, step) = STEPS.into_iter().find(|(known, _)| *known == name)?;
            let action = match action {
                "abort" => Action::Abort,
                "error" => Action::Error,
                "lose" => Action::Lose,
                ms => Action::Sleep(Duration::from_millis(ms.parse().ok()?)),
            };
            let remaining = AtomicU32::new(turn.parse().ok().filter(|turn| *turn > 0)?);
            Some(Self { step, action, remaining, after, fired_for: OnceLock::new() })
        }

        /// Counts a pass and returns whether the failpoint fires at it.
        fn count_pass(&self, step: Step) -> bool {
            let decrement = |remaining: u32| remaining.checked_sub(1);
            self.step == step && self.remaining.fetch_update(Ordering::SeqCst, Ordering::SeqCst, decrement) == Ok(1)
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn failpoint_fires_once_at_its_turn() {
            let failpoints = Failpoints::parse("stored=abort@3,rendered=250").unwrap();
            let passes = [Step::Stored, Step::Created, Step::Stored, Step::Stored, Step::Stored];
            let fired = passes.map(|step| failpoints.fire(step, None).is_some());
            assert_eq!(fired, [false, false, false, true, false]);
            assert_eq!(failpoints.armed[1].action, Action::Sleep(Duration::from_millis(250)));
            for text in ["stored", "stored=", "sorted=abort", "stored=abort@0", "stored=abort@x", "stored=lose>"] {
                assert!(Failpoints::parse(text).is_err(), "{text}");
            }
            assert!(Failpoints::parse("").unwrap().armed.is_empty());
            let without_polls = ["", "polls=off"].map(|text| Failpoints::parse(text).unwrap().without_polls);
            assert_eq!(without_polls, [false, true]);
        }

        #[test]
        fn chained_failpoint_fires_for_the_grab_of_the_first() {
            let failpoints = Failpoints::parse("stored=lose@2>stored=error").unwrap();
            let now = grabd_domain::Timestamp::from_ms(0);
            let (one, other) = (crate::random::grab_id(now), crate::random::grab_id(now));
            let passes = [Some(one), Some(other), Some(one), None, Some(other), Some(other)];
            let actions = passes.map(|grab| failpoints.fire(Step::Stored, grab).map(|failpoint| failpoint.action));
            assert_eq!(actions, [None, Some(Action::Lose), None, None, Some(Action::Error), None]);
        }
    }
}
