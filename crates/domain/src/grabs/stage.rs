//! The stages of an attempt, which watchers see while it is in progress.

/// How far an attempt has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The browser requests the page and follows its redirects.
    Navigating,
    /// The load event of the page has fired.
    Loaded,
    /// The page is waited for until nothing would change its image, and prepared for the image.
    Settling,
    /// The image was taken. Attachments may still be made.
    Captured,
}

impl Stage {
    /// All stages, in their order.
    pub const ALL: [Self; 4] = [Self::Navigating, Self::Loaded, Self::Settling, Self::Captured];

    /// The name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Navigating => "navigating",
            Self::Loaded => "loaded",
            Self::Settling => "settling",
            Self::Captured => "captured",
        }
    }
}

/// The stages that an attempt has reached, each with the milliseconds since the start of the attempt. A page without a
/// load event skips [`Stage::Loaded`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stages {
    /// Number of the attempt, from 1. 0: none.
    attempt: u32,
    /// When each stage of [`Stage::ALL`] was reached.
    reached: [Option<u32>; Stage::ALL.len()],
}

impl Stages {
    /// An attempt that has reached none.
    pub const fn of_attempt(attempt: u32) -> Self {
        Self { attempt, reached: [None; Stage::ALL.len()] }
    }

    /// Records that a stage was reached, not earlier than the stages before. Returns false and changes nothing if that
    /// stage or a later one was reached before, so that each changes at most once, whatever a renderer reports.
    pub fn reach(&mut self, stage: Stage, ms: u32) -> bool {
        let last = self.iter().last();
        if last.is_some_and(|(last, _)| last >= stage) {
            return false;
        }
        let ms = last.map_or(ms, |(_, last_ms)| ms.max(last_ms));
        if let Some(reached) = Stage::ALL.iter().position(|of| *of == stage).and_then(|at| self.reached.get_mut(at)) {
            *reached = Some(ms);
        }
        true
    }

    /// The stages that were reached, in their order, and when.
    pub fn iter(&self) -> impl Iterator<Item = (Stage, u32)> + use<> {
        Stage::ALL.into_iter().zip(self.reached).filter_map(|(stage, ms)| Some((stage, ms?)))
    }

    /// The last stage that was reached, and when.
    pub fn current(&self) -> Option<(Stage, u32)> {
        self.iter().last()
    }

    /// Whether these are of a later attempt than `other`, or of the same one at a later stage.
    pub fn is_after(&self, other: &Self) -> bool {
        let position = |stages: &Self| (stages.attempt, stages.current().map(|(stage, _)| stage));
        position(self) > position(other)
    }

    /// The attempt to which they belong.
    pub const fn attempt(&self) -> u32 {
        self.attempt
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stage_is_reached_at_most_once_and_in_order() {
        let mut stages = Stages::of_attempt(1);
        assert!(stages.reach(Stage::Navigating, 3));
        assert!(!stages.reach(Stage::Navigating, 4), "a second time");
        assert!(stages.reach(Stage::Settling, 90), "without a load event");
        assert!(!stages.reach(Stage::Loaded, 95), "after a later stage");
        assert!(stages.reach(Stage::Captured, 10));
        assert!(Stage::ALL.into_iter().all(|stage| !stages.reach(stage, u32::MAX)));
        let seen: Vec<_> = stages.iter().collect();
        // Times never decrease.
        assert_eq!(seen, [(Stage::Navigating, 3), (Stage::Settling, 90), (Stage::Captured, 90)]);
        assert_eq!(stages.current(), Some((Stage::Captured, 90)));
    }

    #[test]
    fn later_attempts_and_later_stages_are_after_earlier_ones() {
        let at = |attempt, stages: &[Stage]| {
            let mut of = Stages::of_attempt(attempt);
            stages.iter().for_each(|stage| _ = of.reach(*stage, 1));
            of
        };
        let order = [
            Stages::default(),
            at(1, &[]),
            at(1, &[Stage::Navigating]),
            at(1, &[Stage::Loaded, Stage::Captured]),
            at(2, &[]),
            at(2, &[Stage::Navigating]),
        ];
        for (index, stages) in order.iter().enumerate() {
            for (other_index, other) in order.iter().enumerate() {
                assert_eq!(stages.is_after(other), index > other_index, "{stages:?} {other:?}");
            }
        }
    }
}
