//! Steps of a grab's path at which a test may have the process die, hang, fail, or lose its lease.
//!
//! A kill at random hardly ever falls between two steps, so the steps have names. They exist in builds with debug
//! assertions, which are those that tests run anyhow: nothing is compiled twice for them. To add one: a variant of
//! [`Step`], its name among those of `armed` and a call of [`reach`].
//!
//! *Invariant:* what ships cannot be told to fail: without debug assertions there is nothing to arm, and [`reach`] is
//! empty.

use grabd_domain::ids::{GrabId, LeaseToken};

use crate::core::Core;

/// A step that has been taken, or is about to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A create was committed, and nobody knows yet.
    Created,
    /// A renderer was sent its assignment.
    Assigned,
    /// A render was reported, and nothing is stored yet.
    Rendered,
    /// The picture is on the disk, the grab still open.
    Stored,
    /// The grab has ended, well or badly, and nobody knows yet.
    Completed,
    /// A render is about to be given back.
    Releasing,
    /// At start, some leases of an earlier life were given back.
    TakingOver,
}

/// What is armed. Nothing, unless a test says so.
#[derive(Debug, Default)]
pub struct Failpoints {
    #[cfg(debug_assertions)]
    armed: Vec<armed::Armed>,
}

/// Passes a step. Where a failpoint is armed for it, its action happens; `lease` is what may be lost here.
///
/// # Errors
/// As the store has them when its answer is lost, where an armed failpoint wants it so.
#[cfg(debug_assertions)]
pub(crate) async fn reach(core: &Core, step: Step, lease: Option<(GrabId, LeaseToken)>) -> grabd_store::Result<()> {
    match core.failpoints.fires(step, lease.map(|(grab, _)| grab)) {
        Some(armed) => armed.act(core, lease).await,
        None => Ok(()),
    }
}

/// Passes a step.
#[cfg(not(debug_assertions))]
pub(crate) async fn reach(_: &Core, _: Step, _: Option<(GrabId, LeaseToken)>) -> grabd_store::Result<()> {
    Ok(())
}

#[cfg(debug_assertions)]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use super::{Core, Failpoints, GrabId, LeaseToken, Step};

    const STEPS: [(&str, Step); 7] = [
        ("created", Step::Created),
        ("assigned", Step::Assigned),
        ("rendered", Step::Rendered),
        ("stored", Step::Stored),
        ("completed", Step::Completed),
        ("releasing", Step::Releasing),
        ("taking_over", Step::TakingOver),
    ];

    #[derive(Debug)]
    pub(super) struct Armed {
        step: Step,
        action: Action,
        /// How often the step is passed until it fires, that time included. It fires once.
        left: AtomicU32,
        /// The one that must have fired before, by its place. Then only passes of the same grab count.
        after: Option<usize>,
        /// Whose pass it fired at.
        fired_for: OnceLock<Option<GrabId>>,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Action {
        /// The process dies as if it were killed.
        Abort,
        /// The answer of the database is lost.
        Error,
        /// The lease is taken away, as the sweep does when it has run out, and the work goes on.
        Lose,
        /// The work hangs, for as long as the test says: also a shutdown meets it as it would meet any hang.
        Sleep(Duration),
    }

    /// A text that arms nothing.
    #[derive(Debug, thiserror::Error)]
    #[error("{0:?} is no step=action@turn with an action of abort, error, lose or milliseconds to sleep")]
    pub struct Unknown(String);

    impl Failpoints {
        /// Arms `step=action@turn`, several with commas between. The turn is 1 when it is left out. `first>second` is a
        /// fault on top of a fault: the second waits for the first, and for the grab that the first has met.
        ///
        /// # Errors
        /// The first that cannot be read.
        pub fn parse(text: &str) -> Result<Self, Unknown> {
            let mut armed = Vec::new();
            for chain in text.split(',').filter(|chain| !chain.is_empty()) {
                let mut after = None;
                for part in chain.split('>') {
                    armed.push(Armed::parse(part, after).ok_or_else(|| Unknown(part.to_owned()))?);
                    after = Some(armed.len() - 1);
                }
            }
            Ok(Self { armed })
        }

        /// The one that fires at this pass.
        pub(super) fn fires(&self, step: Step, grab: Option<GrabId>) -> Option<&Armed> {
            let is_its_turn = |armed: &&Armed| match armed.after.and_then(|first| self.armed.get(first)) {
                Some(first) => grab.is_some() && first.fired_for.get() == Some(&grab) && armed.passes(step),
                None => armed.passes(step),
            };
            let armed = self.armed.iter().find(is_its_turn)?;
            // It fires once, so nobody was here before.
            armed.fired_for.set(grab).ok()?;
            Some(armed)
        }
    }

    impl Armed {
        fn parse(text: &str, after: Option<usize>) -> Option<Self> {
            let (name, then) = text.split_once('=')?;
            let (action, turn) = then.split_once('@').unwrap_or((then, "1"));
            let (_, step) = STEPS.into_iter().find(|(known, _)| *known == name)?;
            let action = match action {
                "abort" => Action::Abort,
                "error" => Action::Error,
                "lose" => Action::Lose,
                ms => Action::Sleep(Duration::from_millis(ms.parse().ok()?)),
            };
            let left = AtomicU32::new(turn.parse().ok().filter(|turn| *turn > 0)?);
            Some(Self { step, action, left, after, fired_for: OnceLock::new() })
        }

        /// Counts a pass; was it the one?
        fn passes(&self, step: Step) -> bool {
            let pass = |left: u32| left.checked_sub(1);
            self.step == step && self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, pass) == Ok(1)
        }

        pub(super) async fn act(&self, core: &Core, lease: Option<(GrabId, LeaseToken)>) -> grabd_store::Result<()> {
            tracing::warn!(step = ?self.step, action = ?self.action, "a failpoint fires");
            match (self.action, lease) {
                (Action::Abort, _) => std::process::abort(),
                (Action::Error, _) => Err(grabd_store::Error::Closed),
                (Action::Lose, Some((grab, token))) => {
                    core.store.release(grab, token, core.clock.now()).await.map(drop)
                }
                (Action::Lose, None) => Ok(()),
                (Action::Sleep(length), _) => {
                    tokio::time::sleep(length).await;
                    Ok(())
                }
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_failpoint_fires_at_its_turn_and_never_again() {
            let failpoints = Failpoints::parse("stored=abort@3,rendered=250").unwrap();
            let passes = [Step::Stored, Step::Created, Step::Stored, Step::Stored, Step::Stored];
            let fired = passes.map(|step| failpoints.fires(step, None).is_some());
            assert_eq!(fired, [false, false, false, true, false]);
            assert_eq!(failpoints.armed[1].action, Action::Sleep(Duration::from_millis(250)));
            for text in ["stored", "stored=", "sorted=abort", "stored=abort@0", "stored=abort@x", "stored=lose>"] {
                assert!(Failpoints::parse(text).is_err(), "{text}");
            }
            assert!(Failpoints::parse("").unwrap().armed.is_empty());
        }

        #[test]
        fn a_second_fault_meets_the_grab_of_the_first() {
            let failpoints = Failpoints::parse("stored=lose@2>stored=error").unwrap();
            let now = grabd_domain::Timestamp::from_ms(0);
            let (one, other) = (crate::chance::grab_id(now), crate::chance::grab_id(now));
            let passes = [Some(one), Some(other), Some(one), None, Some(other), Some(other)];
            let actions = passes.map(|grab| failpoints.fires(Step::Stored, grab).map(|armed| armed.action));
            assert_eq!(actions, [None, Some(Action::Lose), None, None, Some(Action::Error), None]);
        }
    }
}
