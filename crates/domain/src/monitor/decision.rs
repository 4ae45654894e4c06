//! What follows from a run: the next baseline, and the alerts.

use super::compare::Baseline;
use super::outcome::RunOutcome;

/// Failed runs in a row after which an alert is sent.
pub const ALERT_AFTER_FAILURES: u32 = 3;

/// What is remembered from run to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Runs in a row that differ from the baseline.
    pub differing: u32,
    /// Whether an alert was sent for the current difference from an accepted baseline.
    pub is_change_reported: bool,
    /// Failed runs in a row.
    pub failures: u32,
    /// Whether an alert was sent for them.
    pub is_failure_reported: bool,
}

/// The alerts that a run causes. Both of `changed` and `recovered` are possible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Alerts {
    /// The page has changed.
    pub changed: bool,
    /// The last runs have failed.
    pub failed: bool,
    /// The first done run after failed ones that an alert was sent for.
    pub recovered: bool,
}

/// What follows from a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunDecision {
    /// What is remembered.
    pub progress: Progress,
    /// The alerts.
    pub alerts: Alerts,
    /// Whether its capture is the next baseline.
    pub is_baseline: bool,
}

impl Progress {
    /// What follows from a run with this outcome. An alert needs `alert_after` runs in a row that differ.
    pub fn decide(self, outcome: RunOutcome, alert_after: u32, baseline: Baseline) -> RunDecision {
        let unchanged = RunDecision { progress: self, alerts: Alerts::default(), is_baseline: false };
        match outcome {
            RunOutcome::Running | RunOutcome::Missed => unchanged,
            RunOutcome::Failed => {
                let failures = self.failures.saturating_add(1);
                let failed = failures >= ALERT_AFTER_FAILURES && !self.is_failure_reported;
                let is_failure_reported = self.is_failure_reported || failed;
                let progress = Self { failures, is_failure_reported, ..self };
                RunDecision { progress, alerts: Alerts { failed, ..Alerts::default() }, is_baseline: false }
            }
            RunOutcome::First | RunOutcome::Same | RunOutcome::Changed => {
                let recovered = Alerts { recovered: self.is_failure_reported, ..Alerts::default() };
                let without_failures = Self { failures: 0, is_failure_reported: false, ..self };
                without_failures.decide_done(outcome, alert_after, baseline, recovered)
            }
        }
    }

    fn decide_done(self, outcome: RunOutcome, alert_after: u32, baseline: Baseline, alerts: Alerts) -> RunDecision {
        let at_baseline = Self { differing: 0, is_change_reported: false, ..self };
        if outcome != RunOutcome::Changed {
            return RunDecision { progress: at_baseline, alerts, is_baseline: outcome == RunOutcome::First };
        }
        let differing = self.differing.saturating_add(1);
        let changed = differing >= alert_after && !self.is_change_reported;
        let alerts = Alerts { changed, ..alerts };
        match baseline {
            // A change that was reported while only accepted captures were baselines is one now.
            Baseline::Latest if changed || self.is_change_reported => {
                RunDecision { progress: at_baseline, alerts, is_baseline: true }
            }
            Baseline::Latest | Baseline::Accepted => {
                let is_change_reported = self.is_change_reported || changed;
                RunDecision { progress: Self { differing, is_change_reported, ..self }, alerts, is_baseline: false }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The alerts of runs with these outcomes, one letter for each: `f`ailed, `m`issed, `1` for the first, `s`ame, `c`hanged. In
    /// the result: `C`hanged, `F`ailed, `R`ecovered, `B` for a new baseline.
    fn alerts_of(outcomes: &str, alert_after: u32, baseline: Baseline) -> Vec<String> {
        let mut progress = Progress::default();
        let decide = |letter| {
            let outcome = match letter {
                'f' => RunOutcome::Failed,
                'm' => RunOutcome::Missed,
                '1' => RunOutcome::First,
                's' => RunOutcome::Same,
                _ => RunOutcome::Changed,
            };
            let RunDecision { progress: next, alerts, is_baseline } = progress.decide(outcome, alert_after, baseline);
            progress = next;
            let all = [(alerts.changed, 'C'), (alerts.failed, 'F'), (alerts.recovered, 'R'), (is_baseline, 'B')];
            all.into_iter().filter_map(|(is_set, letter)| is_set.then_some(letter)).collect()
        };
        outcomes.chars().map(decide).collect()
    }

    #[test]
    fn change_is_reported_once_and_becomes_the_baseline() {
        assert_eq!(alerts_of("1sccs", 1, Baseline::Latest), ["B", "", "CB", "CB", ""]);
    }

    #[test]
    fn change_is_reported_after_as_many_runs_in_a_row() {
        assert_eq!(alerts_of("1ccsccc", 3, Baseline::Latest), ["B", "", "", "", "", "", "CB"]);
        assert_eq!(alerts_of("1cfcmc", 3, Baseline::Latest), ["B", "", "", "", "", "CB"], "failed runs say nothing");
    }

    #[test]
    fn accepted_baseline_stays_and_its_change_is_reported_until_it_is_the_same_again() {
        assert_eq!(alerts_of("1cccscc", 1, Baseline::Accepted), ["B", "C", "", "", "", "C", ""]);
        assert_eq!(alerts_of("1cccc", 2, Baseline::Accepted), ["B", "", "C", "", ""]);
    }

    #[test]
    fn change_that_was_reported_before_is_the_baseline_once_the_latest_one_is_to_be() {
        let reported = Progress { differing: 4, is_change_reported: true, ..Progress::default() };
        for alert_after in [1, 5, 9] {
            let next = reported.decide(RunOutcome::Changed, alert_after, Baseline::Latest);
            assert_eq!((next.alerts, next.is_baseline), (Alerts::default(), true), "it is not reported again");
            assert_eq!(next.progress, Progress::default(), "the next change is reported");
        }
    }

    #[test]
    fn third_failure_is_reported_once_and_so_is_its_end() {
        assert_eq!(alerts_of("1ffsff", 1, Baseline::Latest), ["B", "", "", "", "", ""]);
        assert_eq!(alerts_of("1ffffss", 1, Baseline::Latest), ["B", "", "", "F", "", "R", ""]);
        assert_eq!(alerts_of("1fmffc", 1, Baseline::Latest), ["B", "", "", "", "F", "CRB"]);
    }
}
