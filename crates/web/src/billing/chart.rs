//! The captures of the last days, as a bar chart and as a table with the same figures.

use grabd_domain::Day;
use grabd_engine::billing::{DailyGrabs, EndedGrabs};

use crate::bars::{Bar, WIDTH, percent, pixels, stacked};
use crate::number::grouped;
use crate::time_format::Date;

/// The baseline of the bars, in tenths of a pixel from the top.
const BASELINE: u64 = 1800;
/// The height of the topmost grid line above the baseline.
const PLOT_HEIGHT: u64 = 1680;
/// The minimum height of a non-zero segment, so that it is visible.
const MIN_HEIGHT: u64 = 15;
/// The gap on either side of a bar in percent of the width per day.
const GAP: u64 = 12;
/// Days between two labels of the horizontal axis.
const LABEL_EVERY: usize = 10;
/// The width of the last label, `Today`, in bars.
const LAST_LABEL: usize = 6;

/// Reads one figure of a day.
type Figure = fn(&DailyGrabs) -> u64;

/// The four series: name, CSS class and accessor.
const SERIES: [(&str, &str, Figure); 4] = [
    ("Live, done", "live", |day| day.live.done),
    ("Live, failed", "live failed", |day| day.live.failed),
    ("Test, done", "test", |day| day.test.done),
    ("Test, failed", "test failed", |day| day.test.failed),
];

/// The chart and the table.
pub(super) struct Chart {
    /// The text alternative of the chart.
    pub(super) name: String,
    pub(super) series: Vec<Series>,
    pub(super) lines: Vec<Line>,
    pub(super) bars: Vec<Bar>,
    pub(super) labels: Vec<Label>,
    /// Latest day first.
    pub(super) rows: Vec<Row>,
}

/// One series with its sum over all days.
pub(super) struct Series {
    pub(super) name: &'static str,
    pub(super) class: &'static str,
    pub(super) sum: String,
}

/// A horizontal grid line.
pub(super) struct Line {
    pub(super) y: String,
    pub(super) label: String,
}

/// A label of the horizontal axis.
pub(super) struct Label {
    pub(super) x: String,
    pub(super) text: String,
    pub(super) is_last: bool,
}

/// A day in the table.
pub(super) struct Row {
    pub(super) date: Date,
    pub(super) is_today: bool,
    pub(super) figures: Vec<String>,
}

impl Chart {
    /// The chart of consecutive days, the last of which is today. `None` if nothing was captured.
    pub(super) fn of(days: &[DailyGrabs]) -> Option<Self> {
        let highest = days.iter().map(sum).max().filter(|highest| *highest > 0)?;
        let top = top(highest);
        let last = days.len() - 1;
        let total = |figure: Figure| grouped(days.iter().map(figure).sum());
        let series: Vec<Series> = SERIES.map(|(name, class, figure)| Series { name, class, sum: total(figure) }).into();
        let row = |(index, day): (usize, &DailyGrabs)| Row {
            date: day.day.into(),
            is_today: index == last,
            figures: SERIES.map(|(_, _, figure)| grouped(figure(day))).into(),
        };
        Some(Self {
            name: name(days, &series),
            series,
            lines: [top, top / 2, 0].map(|value| Line::at(value, top)).into(),
            bars: days.iter().enumerate().map(|(index, day)| bar(index, day, days.len(), top)).collect(),
            labels: labels(days),
            rows: days.iter().enumerate().rev().map(row).collect(),
        })
    }
}

impl Line {
    fn at(value: u64, top: u64) -> Self {
        // All grid lines use the unit of the topmost one.
        let label = match top {
            0..=9_999 => grouped(value),
            10_000..=9_999_999 => format!("{}k", grouped(value / 1_000)),
            10_000_000.. => format!("{}M", grouped(value / 1_000_000)),
        };
        Self { y: pixels(BASELINE - scaled(value, top)), label: if value == 0 { "0".to_owned() } else { label } }
    }
}

/// The bar of a day.
fn bar(index: usize, day: &DailyGrabs, days: usize, top: u64) -> Bar {
    let width = WIDTH / days as u64;
    let gap = width * GAP / 100;
    let heights = SERIES.map(|(_, class, figure)| match figure(day) {
        0 => (class, 0),
        count => (class, scaled(count, top).max(MIN_HEIGHT)),
    });
    let figures = SERIES.map(|(name, _, figure)| format!("{name}: {}", grouped(figure(day))));
    let so_far = if index + 1 == days { ", so far" } else { "" };
    Bar {
        title: format!("{}{so_far}. {}", Date::from(day.day).human, figures.join(". ")),
        x: percent(WIDTH * index as u64 / days as u64 + gap),
        width: percent(width - 2 * gap),
        segments: stacked(BASELINE, heights),
    }
}

fn labels(days: &[DailyGrabs]) -> Vec<Label> {
    let last = days.len() - 1;
    let middle = |index: usize| percent(WIDTH * (2 * index as u64 + 1) / (2 * days.len() as u64));
    let dates = (0..days.len().saturating_sub(LAST_LABEL)).step_by(LABEL_EVERY);
    let dates = dates.map(|index| Label { x: middle(index), text: short(days[index].day), is_last: false });
    dates
        .chain([Label { x: percent(WIDTH), text: "Today".to_owned(), is_last: true }].into_iter().filter(|_| last > 0))
        .collect()
}

fn name(days: &[DailyGrabs], series: &[Series]) -> String {
    let dates = match days {
        [first, .., last] => format!("{} to {}", short(first.day), Date::from(last.day).human),
        [day] => Date::from(day.day).human,
        [] => String::new(),
    };
    let sums: Vec<String> = series.iter().map(|series| format!("{}: {}", series.name, series.sum)).collect();
    // `max_by_key` returns the last of equal days.
    let busiest = days.iter().max_by_key(|day| sum(day));
    let busiest = busiest.map(|day| format!(" Most on {}: {}.", short(day.day), grouped(sum(day)))).unwrap_or_default();
    format!("Captures of each day, {dates}. {}.{busiest}", sums.join(". "))
}

fn short(day: Day) -> String {
    Date::from(day).short
}

fn sum(day: &DailyGrabs) -> u64 {
    let of = |ended: EndedGrabs| ended.done + ended.failed;
    of(day.live) + of(day.test)
}

/// The value of the topmost grid line: a round even number, so that its half is a round number too.
fn top(highest: u64) -> u64 {
    let mut unit = 1_u64;
    loop {
        for digits in [2, 4, 6, 8, 10] {
            let top = unit.saturating_mul(digits);
            if top >= highest {
                return top;
            }
        }
        unit = unit.saturating_mul(10);
    }
}

fn scaled(count: u64, top: u64) -> u64 {
    let scaled = u128::from(count) * u128::from(PLOT_HEIGHT) / u128::from(top.max(1));
    u64::try_from(scaled).unwrap_or(PLOT_HEIGHT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn days(count: u16, figures: impl Fn(u16) -> [u64; 4]) -> Vec<DailyGrabs> {
        let today = Day::from_number(20_778);
        let day = |before: u16| {
            let [live_done, live_failed, test_done, test_failed] = figures(before);
            DailyGrabs {
                day: today.before(before),
                live: EndedGrabs { done: live_done, failed: live_failed },
                test: EndedGrabs { done: test_done, failed: test_failed },
            }
        };
        (0..count).rev().map(day).collect()
    }

    fn tenths(pixels: &str) -> u64 {
        pixels.replace('.', "").parse().unwrap()
    }

    #[test]
    fn topmost_grid_line_is_round_and_even() {
        for (highest, expected) in
            [(1, 2), (2, 2), (3, 4), (5, 6), (9, 10), (10, 10), (11, 20), (41, 60), (999, 1000), (12_345, 20_000)]
        {
            assert_eq!(top(highest), expected, "{highest}");
        }
        assert!(top(u64::MAX) == u64::MAX);
        let labels = |top| [top, top / 2, 0].map(|value| Line::at(value, top).label);
        assert_eq!(labels(8_000), ["8,000", "4,000", "0"]);
        assert_eq!(labels(10_000), ["10k", "5k", "0"]);
        assert_eq!(labels(20_000_000), ["20M", "10M", "0"]);
    }

    #[test]
    fn segments_are_scaled_and_stacked() {
        let days = days(30, |before| match before {
            0 => [1, 0, 0, 0],
            3 => [40, 20, 15, 5],
            29 => [0, 0, 0, 2],
            _ => [0; 4],
        });
        let chart = Chart::of(&days).unwrap();
        assert_eq!(chart.bars.len(), 30);
        let busiest = &chart.bars[26];
        let classes: Vec<&str> = busiest.segments.iter().map(|segment| segment.class).collect();
        assert_eq!(classes, ["live", "live failed", "test", "test failed"]);
        let heights: Vec<u64> = busiest.segments.iter().map(|segment| tenths(&segment.height)).collect();
        assert_eq!(heights, [840, 420, 315, 105]);
        let mut y = BASELINE;
        for segment in &busiest.segments {
            assert_eq!(tenths(&segment.y) + tenths(&segment.height), y);
            y = tenths(&segment.y);
        }
        // The 80 captures of that day reach the topmost grid line.
        assert_eq!((chart.lines[0].label.as_str(), tenths(&chart.lines[0].y)), ("80", y));
        assert_eq!(chart.bars[1].segments.len(), 0);
        let sums: Vec<&str> = chart.series.iter().map(|series| series.sum.as_str()).collect();
        assert_eq!(sums, ["41", "20", "15", "7"]);
        assert_eq!(
            chart.name,
            "Captures of each day, 23 Oct to 21 Nov 2026. Live, done: 41. Live, failed: 20. Test, done: 15. \
             Test, failed: 7. Most on 18 Nov: 80."
        );
        assert_eq!(
            chart.bars[29].title,
            "21 Nov 2026, so far. Live, done: 1. Live, failed: 0. Test, done: 0. Test, failed: 0"
        );
    }

    #[test]
    fn table_has_the_same_figures_and_marks_today() {
        let days = days(30, |before| [u64::from(before), 1, 2_000, 3]);
        let chart = Chart::of(&days).unwrap();
        for (row, day) in chart.rows.iter().rev().zip(&days) {
            assert_eq!(row.figures, SERIES.map(|(_, _, figure)| grouped(figure(day))));
            assert_eq!(row.date, Date::from(day.day));
        }
        let today: Vec<usize> = (0..30).filter(|index| chart.rows[*index].is_today).collect();
        assert_eq!((today, chart.rows[0].date.human.as_str()), (vec![0], "21 Nov 2026"));
        let labels: Vec<&str> = chart.labels.iter().map(|label| label.text.as_str()).collect();
        assert_eq!(labels, ["23 Oct", "2 Nov", "12 Nov", "Today"]);
    }

    #[test]
    fn small_values_have_a_minimum_height_and_no_captures_no_chart() {
        assert!(Chart::of(&days(30, |_| [0; 4])).is_none());
        let chart = Chart::of(&days(30, |before| if before == 1 { [999_997, 1, 1, 1] } else { [0; 4] })).unwrap();
        let segments = &chart.bars[28].segments;
        assert!(segments[1..].iter().all(|segment| tenths(&segment.height) == MIN_HEIGHT) && segments.len() == 4);
        assert!(tenths(&segments[3].y) < BASELINE - PLOT_HEIGHT);
        let right = &chart.bars[29];
        assert_eq!((right.x.as_str(), right.width.as_str()), ("97.05%", "2.55%"));
    }
}
