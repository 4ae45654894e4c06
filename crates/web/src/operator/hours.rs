//! The live captures of the last 24 hours by hour: a small bar chart, and a table with the same figures.

use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::credentials::Environment;
use grabd_engine::operator::{HOURS, OutcomeCount};

use crate::bars::{Bar, WIDTH, percent, stacked};
use crate::number::grouped;
use crate::time_format::Moment;

/// Height of the chart, in tenths of a pixel.
const HEIGHT: u64 = 480;
/// Minimum height of a segment, so that one capture is visible.
const MIN_HEIGHT: u64 = 20;
/// The gap between two bars.
const GAP: u64 = 60;
const HOUR: Duration = Duration::from_secs(60 * 60);

/// The chart and the table.
pub(super) struct Hours {
    /// The text alternative of the chart.
    pub(super) name: String,
    pub(super) bars: Vec<Bar>,
    /// Latest hour first.
    pub(super) rows: Vec<Row>,
}

/// An hour in the table.
pub(super) struct Row {
    pub(super) from: Moment,
    pub(super) done: String,
    pub(super) failed: String,
}

/// The captures of an hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ended {
    done: u64,
    failed: u64,
}

impl Hours {
    /// The hours before `now`. `None` if nothing ended.
    pub(super) fn of(ended: &[OutcomeCount], now: Timestamp) -> Option<Self> {
        let hours = by_hour(ended);
        let highest = hours.iter().map(|hour| hour.done + hour.failed).max().filter(|highest| *highest > 0)?;
        let sum = |figure: fn(&Ended) -> u64| grouped(hours.iter().map(figure).sum());
        let (done, failed) = (sum(|hour| hour.done), sum(|hour| hour.failed));
        let start = |index: usize| now - HOUR * u32::try_from(hours.len() - index).unwrap_or(HOURS);
        let row = |(index, hour): (usize, &Ended)| Row {
            from: start(index).into(),
            done: grouped(hour.done),
            failed: grouped(hour.failed),
        };
        let bar = |(index, hour): (usize, &Ended)| bar(index, *hour, hours.len(), highest, start(index));
        Some(Self {
            name: format!(
                "Live captures of each of the last {HOURS} hours. Done: {done}. Failed: {failed}. Most in an hour: {}.",
                grouped(highest)
            ),
            bars: hours.iter().enumerate().map(bar).collect(),
            rows: hours.iter().enumerate().rev().map(row).collect(),
        })
    }
}

/// One entry for each hour, earliest first.
fn by_hour(ended: &[OutcomeCount]) -> Vec<Ended> {
    let mut hours = vec![Ended::default(); usize::try_from(HOURS).unwrap_or_default()];
    let last = hours.len().saturating_sub(1);
    for of in ended.iter().filter(|of| of.environment == Environment::Live) {
        // What ended while the figures were read belongs to the last hour.
        let index = usize::try_from(of.hour).unwrap_or(last).min(last);
        let Some(hour) = hours.get_mut(index) else { continue };
        match of.failure {
            None => hour.done += of.grabs,
            Some(_) => hour.failed += of.grabs,
        }
    }
    hours
}

/// The bar of an hour.
fn bar(index: usize, hour: Ended, hours: usize, highest: u64, from: Timestamp) -> Bar {
    let (index, hours) = (index as u64, hours as u64);
    let Ended { done, failed } = hour;
    let heights = [("live", done), ("failed", failed)].map(|(class, count)| match count {
        0 => (class, 0),
        count => (class, (count.saturating_mul(HEIGHT) / highest).max(MIN_HEIGHT)),
    });
    Bar {
        title: format!("From {}. Done: {}. Failed: {}", Moment::from(from).human, grouped(done), grouped(failed)),
        x: percent(WIDTH * index / hours),
        width: percent((WIDTH / hours).saturating_sub(GAP)),
        segments: stacked(HEIGHT, heights),
    }
}

#[cfg(test)]
mod tests {
    use grabd_domain::grabs::FailureReason;

    use super::*;

    const NOW: Timestamp = Timestamp::from_ms(1_795_206_774_120);

    fn count(hour: u32, environment: Environment, failure: Option<FailureReason>, grabs: u64) -> OutcomeCount {
        OutcomeCount { hour, environment, failure, grabs }
    }

    #[test]
    fn live_captures_are_summed_by_hour() {
        let (blocked, failed) = (Some(FailureReason::RenderBlocked), Some(FailureReason::RenderFailed));
        let ended = [
            count(0, Environment::Live, None, 40),
            count(0, Environment::Live, blocked, 6),
            count(0, Environment::Live, failed, 4),
            count(0, Environment::Test, None, 9000),
            count(23, Environment::Live, None, 1),
            count(24, Environment::Live, None, 1),
        ];
        let hours = Hours::of(&ended, NOW).unwrap();
        assert_eq!(
            hours.name,
            "Live captures of each of the last 24 hours. Done: 42. Failed: 10. Most in an hour: 50."
        );
        assert_eq!((hours.bars.len(), hours.rows.len()), (24, 24));
        let first = &hours.bars[0];
        let segments: Vec<_> = first.segments.iter().map(|of| (of.class, of.y.as_str(), of.height.as_str())).collect();
        assert_eq!(segments, [("live", "9.6", "38.4"), ("failed", "0.0", "9.6")]);
        assert_eq!(first.title, "From 19 Nov 2026, 20:32. Done: 40. Failed: 10");
        // One capture is visible.
        assert_eq!(hours.bars[23].segments[0].height, "2.0");
        let (latest, earliest) = (&hours.rows[0], &hours.rows[23]);
        assert_eq!((latest.done.as_str(), latest.from.human.as_str()), ("2", "20 Nov 2026, 19:32"));
        assert_eq!((earliest.done.as_str(), earliest.failed.as_str()), ("40", "10"));
    }

    #[test]
    fn no_captures_have_no_chart() {
        assert!(Hours::of(&[], NOW).is_none());
        assert!(Hours::of(&[count(3, Environment::Test, None, 5)], NOW).is_none());
    }
}
