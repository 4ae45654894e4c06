//! How much the image differed in the last runs, as a bar chart. The list of runs below it has the same figures.

use grabd_domain::monitor::{Run, RunOutcome};

use super::view::{outcome_name, share_text};
use crate::bars::{Bar, WIDTH, percent, pixels, stacked};
use crate::time_format::Moment;

/// The most runs of a chart.
pub(super) const MAX_RUNS: usize = 40;
/// The baseline of the bars, in tenths of a pixel from the top.
const BASELINE: u64 = 960;
/// The height of the topmost grid line above the baseline.
const PLOT_HEIGHT: u64 = 860;
/// The minimum height of a bar, so that it is visible.
const MIN_HEIGHT: u64 = 15;
/// The height of the bar of a failed run, which has no figure.
const FAILED_HEIGHT: u64 = 60;
/// The gap on either side of a bar in percent of the width per run.
const GAP: u64 = 12;
/// The fewest bars that the width is divided into, so that the bars of few runs are not wide.
const MIN_SLOTS: usize = 20;
/// The lowest value of the topmost grid line, in millionths of the image.
const MIN_TOP: u32 = 100;

/// The chart.
pub(super) struct Chart {
    /// The text alternative.
    pub(super) name: String,
    pub(super) lines: Vec<Line>,
    /// The part of the image that may differ.
    pub(super) threshold: Option<Line>,
    pub(super) bars: Vec<Bar>,
}

/// A horizontal line.
pub(super) struct Line {
    pub(super) y: String,
    pub(super) label: String,
}

impl Chart {
    /// The chart of runs, of which the first is the latest. `None` if no images were compared.
    pub(super) fn of(runs: &[Run], threshold_ppm: Option<u32>) -> Option<Self> {
        let runs: Vec<&Run> = runs.iter().take(MAX_RUNS).rev().collect();
        let highest = runs.iter().filter_map(|run| run.difference_ppm).max()?;
        let top = top(highest.max(threshold_ppm.unwrap_or(0)));
        let slots = runs.len().max(MIN_SLOTS);
        let first_slot = slots - runs.len();
        Some(Self {
            name: name(&runs, highest),
            lines: [top, top / 2, 0].map(|value| Line::at(value, top)).into(),
            threshold: threshold_ppm.filter(|ppm| *ppm > 0).map(|ppm| Line::at(ppm, top)),
            bars: runs.iter().enumerate().map(|(index, run)| bar(first_slot + index, slots, run, top)).collect(),
        })
    }
}

impl Line {
    fn at(value: u32, top: u32) -> Self {
        Self { y: pixels(BASELINE - scaled(value, top)), label: format!("{} %", f64::from(value) / 10_000.0) }
    }
}

fn bar(slot: usize, slots: usize, run: &Run, top: u32) -> Bar {
    let slots = slots as u64;
    let width = WIDTH / slots;
    let gap = width * GAP / 100;
    let (class, height) = match (run.outcome, run.difference_ppm) {
        (RunOutcome::Failed, _) => ("failed", FAILED_HEIGHT),
        (_, Some(0)) | (_, None) => ("test", 0),
        (RunOutcome::Changed, Some(ppm)) => ("live", scaled(ppm, top).max(MIN_HEIGHT)),
        (_, Some(ppm)) => ("test", scaled(ppm, top).max(MIN_HEIGHT)),
    };
    let share = run.difference_ppm.map(|ppm| format!(", {}", share_text(ppm))).unwrap_or_default();
    Bar {
        title: format!("{}: {}{share}", Moment::from(run.due_at).human, outcome_name(run.outcome)),
        x: percent(WIDTH * slot as u64 / slots + gap),
        width: percent(width - 2 * gap),
        segments: stacked(BASELINE, [(class, height)]),
    }
}

fn name(runs: &[&Run], highest: u32) -> String {
    let count = |outcome| runs.iter().filter(|run| run.outcome == outcome).count();
    format!(
        "Changed part of the image in the last {} runs. Changed: {}. Failed: {}. Most: {}.",
        runs.len(),
        count(RunOutcome::Changed),
        count(RunOutcome::Failed),
        share_text(highest)
    )
}

/// The value of the topmost grid line: the next of 1, 2, 4, 6, 8 times a power of ten, whose half is a round number too.
fn top(highest: u32) -> u32 {
    let mut unit = MIN_TOP;
    loop {
        for digit in [1, 2, 4, 6, 8] {
            let top = unit.saturating_mul(digit);
            if top >= highest {
                return top;
            }
        }
        unit = unit.saturating_mul(10);
    }
}

fn scaled(value: u32, top: u32) -> u64 {
    u64::from(value) * PLOT_HEIGHT / u64::from(top.max(1))
}

#[cfg(test)]
mod tests {
    use grabd_domain::Timestamp;
    use grabd_domain::ids::{MonitorId, RunId};

    use super::*;

    const ID: &str = "01993e1c-7b1a-7000-8000-0123456789ab";

    fn run(outcome: RunOutcome, difference_ppm: Option<u32>) -> Run {
        Run {
            id: ID.parse::<RunId>().unwrap(),
            monitor: ID.parse::<MonitorId>().unwrap(),
            due_at: Timestamp::from_ms(0),
            outcome,
            grab: None,
            compared_to: None,
            difference_ppm,
            changes: Vec::new(),
            text_changes: Vec::new(),
            element_changes: Vec::new(),
            is_alerted: false,
            finished_at: None,
            error: None,
        }
    }

    #[test]
    fn topmost_grid_line_is_round() {
        for (highest, expected) in
            [(0, 100), (100, 100), (101, 200), (1000, 1000), (1001, 2000), (21_000, 40_000), (1_000_000, 1_000_000)]
        {
            assert_eq!(top(highest), expected, "{highest}");
        }
        let labels = |top| [top, top / 2, 0].map(|value| Line::at(value, top).label);
        assert_eq!(labels(1000), ["0.1 %", "0.05 %", "0 %"]);
        assert_eq!(labels(1_000_000), ["100 %", "50 %", "0 %"]);
    }

    #[test]
    fn latest_run_is_on_the_right_and_changes_have_their_own_class() {
        let runs = [
            run(RunOutcome::Changed, Some(40_000)),
            run(RunOutcome::Same, Some(1)),
            run(RunOutcome::Failed, None),
            run(RunOutcome::Same, Some(0)),
            run(RunOutcome::First, None),
        ];
        let chart = Chart::of(&runs, Some(1000)).unwrap();
        let classes: Vec<_> = chart.bars.iter().map(|bar| bar.segments.first().map(|segment| segment.class)).collect();
        assert_eq!(classes, [None, None, Some("failed"), Some("test"), Some("live")]);
        assert_eq!(chart.bars[4].segments[0].height, "86.0");
        assert_eq!(chart.bars[3].segments[0].height, "1.5", "a small difference is visible");
        assert_eq!(chart.bars[4].x, "95.60%", "few runs are at the right end");
        assert_eq!(chart.bars[4].title, "1 Jan 1970, 00:00: Changed, 4.0 %");
        assert_eq!(chart.threshold.unwrap().label, "0.1 %");
        assert_eq!(chart.name, "Changed part of the image in the last 5 runs. Changed: 1. Failed: 1. Most: 4.0 %.");
    }

    #[test]
    fn without_compared_images_there_is_no_chart() {
        assert!(Chart::of(&[run(RunOutcome::First, None), run(RunOutcome::Failed, None)], None).is_none());
        assert!(Chart::of(&[], Some(1000)).is_none());
    }
}
