//! How many changes a monitor has found, and how many of its alerts were false.

use super::changing_site::Change;

/// What a monitor has found so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Score {
    /// Changes that were made, of those that it can find.
    pub(super) made: Vec<Change>,
    /// Found in the round in which they were made.
    pub(super) found: Vec<Change>,
    /// Not found yet.
    pub(super) missed: Vec<Change>,
    /// Found in a later round.
    pub(super) late: usize,
    /// Runs before which nothing had changed that it can find.
    pub(super) quiet: usize,
    /// Alerts of such runs.
    pub(super) false_alerts: usize,
    /// Runs without a capture.
    pub(super) failed: usize,
}

impl Score {
    /// Counts a run: what was changed before, if the monitor can find it, and whether there was an alert.
    ///
    /// An alert makes the capture the baseline, so that it is about all changes since the last alert.
    pub(super) fn add(&mut self, change: Option<Change>, is_alerted: bool) {
        self.made.extend(change);
        match (change, is_alerted) {
            (Some(change), true) => {
                self.found.push(change);
                self.late += std::mem::take(&mut self.missed).len();
            }
            (Some(change), false) => self.missed.push(change),
            (None, true) if self.missed.is_empty() => {
                self.quiet += 1;
                self.false_alerts += 1;
            }
            (None, true) => self.late += std::mem::take(&mut self.missed).len(),
            (None, false) if self.missed.is_empty() => self.quiet += 1,
            (None, false) => {}
        }
    }

    /// The sum of several.
    pub(super) fn sum<'a>(scores: impl Iterator<Item = &'a Self>) -> Self {
        let mut sum = Self::default();
        for Self { made, found, missed, late, quiet, false_alerts, failed } in scores {
            sum.made.extend(made);
            sum.found.extend(found);
            sum.missed.extend(missed);
            sum.late += late;
            sum.quiet += quiet;
            sum.false_alerts += false_alerts;
            sum.failed += failed;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(runs: &[(Option<Change>, bool)]) -> Score {
        let mut score = Score::default();
        runs.iter().for_each(|(change, is_alerted)| score.add(*change, *is_alerted));
        score
    }

    #[test]
    fn alerts_without_a_change_are_false() {
        let score = score(&[(None, true), (Some(Change::Word), true), (None, false)]);
        assert_eq!((score.found.len(), score.false_alerts, score.quiet), (1, 1, 2));
        assert_eq!((score.missed, score.late), (Vec::new(), 0));
    }

    #[test]
    fn alert_after_a_missed_change_is_late_and_not_false() {
        let missed = score(&[(Some(Change::Word), false), (None, false)]);
        assert_eq!((missed.missed, missed.late, missed.quiet), (vec![Change::Word], 0, 0));
        let late = score(&[(Some(Change::Word), false), (None, true), (Some(Change::Colour), false)]);
        assert_eq!((late.missed, late.late, late.false_alerts), (vec![Change::Colour], 1, 0));
        let with_next = score(&[(Some(Change::Word), false), (Some(Change::Colour), true)]);
        assert_eq!((with_next.found, with_next.late), (vec![Change::Colour], 1));
    }
}
