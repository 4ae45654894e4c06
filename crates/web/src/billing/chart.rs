//! The captures of the last days, drawn, and as a table with the same figures.
//!
//! Across, the drawing is measured in hundredths of a percent, so that it is as wide as the page; down, in tenths of a
//! pixel. So it is never scaled, and its letters have the size of all others.

use grabd_domain::Day;
use grabd_engine::billing::{DayOfCaptures, Ended};

use crate::moment::Date;
use crate::number::grouped;

/// Where the bars stand, in tenths of a pixel from the top.
const FLOOR: u64 = 1800;
/// How high the highest line is above the floor.
const HEIGHT: u64 = 1680;
/// What there is any of is seen, however little it is.
const LEAST: u64 = 15;
/// The whole width, and the share of a bar's place that the bar leaves free on either side, in percent.
const WIDTH: u64 = 10_000;
const GAP: u64 = 12;
/// Days between two labels below the floor.
const LABEL_EVERY: usize = 10;
/// Bars that the last label, which says more than a date, needs for itself.
const LAST_LABEL: usize = 6;

/// One of the figures of a day.
type Figure = fn(&DayOfCaptures) -> u64;

/// All four: their name, their class in the style sheet, and where to find them.
const SERIES: [(&str, &str, Figure); 4] = [
    ("Live, done", "live", |day| day.live.done),
    ("Live, failed", "live failed", |day| day.live.failed),
    ("Test, done", "test", |day| day.test.done),
    ("Test, failed", "test failed", |day| day.test.failed),
];

/// The drawing and the table.
pub(super) struct Chart {
    /// What it shows, for those who do not see it.
    pub(super) name: String,
    pub(super) series: Vec<Series>,
    pub(super) lines: Vec<Line>,
    pub(super) bars: Vec<Bar>,
    pub(super) labels: Vec<Label>,
    /// The latest day first.
    pub(super) rows: Vec<Row>,
}

/// One of the figures over all days.
pub(super) struct Series {
    pub(super) name: &'static str,
    pub(super) class: &'static str,
    pub(super) sum: String,
}

/// A number of captures across the drawing.
pub(super) struct Line {
    pub(super) y: String,
    pub(super) label: String,
}

/// A day.
pub(super) struct Bar {
    pub(super) title: String,
    pub(super) x: String,
    pub(super) width: String,
    pub(super) parts: Vec<Part>,
}

/// One figure of a day.
pub(super) struct Part {
    pub(super) class: &'static str,
    pub(super) y: String,
    pub(super) height: String,
}

/// A day's name below the floor.
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
    /// The chart of some days, of which the last is today; `None` when nothing was captured.
    pub(super) fn of(days: &[DayOfCaptures]) -> Option<Self> {
        let highest = days.iter().map(sum).max().filter(|highest| *highest > 0)?;
        let top = top(highest);
        let last = days.len() - 1;
        let total = |figure: Figure| grouped(days.iter().map(figure).sum());
        let series: Vec<Series> = SERIES.map(|(name, class, figure)| Series { name, class, sum: total(figure) }).into();
        let row = |(index, day): (usize, &DayOfCaptures)| Row {
            date: day.day.into(),
            is_today: index == last,
            figures: SERIES.map(|(_, _, figure)| grouped(figure(day))).into(),
        };
        Some(Self {
            name: name(days, &series),
            series,
            lines: [top, top / 2, 0].map(|value| Line::at(value, top)).into(),
            bars: days.iter().enumerate().map(|(index, day)| Bar::of(index, day, days.len(), top)).collect(),
            labels: labels(days),
            rows: days.iter().enumerate().rev().map(row).collect(),
        })
    }
}

impl Line {
    fn at(value: u64, top: u64) -> Self {
        // All lines have the unit of the highest one.
        let label = match top {
            0..=9_999 => grouped(value),
            10_000..=9_999_999 => format!("{}k", grouped(value / 1_000)),
            10_000_000.. => format!("{}M", grouped(value / 1_000_000)),
        };
        Self { y: pixels(FLOOR - scaled(value, top)), label: if value == 0 { "0".to_owned() } else { label } }
    }
}

impl Bar {
    fn of(index: usize, day: &DayOfCaptures, days: usize, top: u64) -> Self {
        let place = WIDTH / days as u64;
        let gap = place * GAP / 100;
        let mut floor = FLOOR;
        let mut parts = Vec::new();
        for (_, class, figure) in SERIES {
            let height = match figure(day) {
                0 => continue,
                count => scaled(count, top).max(LEAST),
            };
            floor = floor.saturating_sub(height);
            parts.push(Part { class, y: pixels(floor), height: pixels(height) });
        }
        let figures = SERIES.map(|(name, _, figure)| format!("{name}: {}", grouped(figure(day))));
        let so_far = if index + 1 == days { ", so far" } else { "" };
        Self {
            title: format!("{}{so_far}. {}", Date::from(day.day).human, figures.join(". ")),
            x: percent(WIDTH * index as u64 / days as u64 + gap),
            width: percent(place - 2 * gap),
            parts,
        }
    }
}

fn labels(days: &[DayOfCaptures]) -> Vec<Label> {
    let last = days.len() - 1;
    let middle = |index: usize| percent(WIDTH * (2 * index as u64 + 1) / (2 * days.len() as u64));
    let dates = (0..days.len().saturating_sub(LAST_LABEL)).step_by(LABEL_EVERY);
    let dates = dates.map(|index| Label { x: middle(index), text: short(days[index].day), is_last: false });
    dates
        .chain([Label { x: percent(WIDTH), text: "Today".to_owned(), is_last: true }].into_iter().filter(|_| last > 0))
        .collect()
}

fn name(days: &[DayOfCaptures], series: &[Series]) -> String {
    let dates = match days {
        [first, .., last] => format!("{} to {}", short(first.day), Date::from(last.day).human),
        [day] => Date::from(day.day).human,
        [] => String::new(),
    };
    let sums: Vec<String> = series.iter().map(|series| format!("{}: {}", series.name, series.sum)).collect();
    // Of two equal ones the later.
    let most = days.iter().max_by_key(|day| sum(day));
    let most = most.map(|day| format!(" Most on {}: {}.", short(day.day), grouped(sum(day)))).unwrap_or_default();
    format!("Captures of each day, {dates}. {}.{most}", sums.join(". "))
}

fn short(day: Day) -> String {
    Date::from(day).short
}

fn sum(day: &DayOfCaptures) -> u64 {
    let of = |ended: Ended| ended.done + ended.failed;
    of(day.live) + of(day.test)
}

/// The number at the highest line: an even one with few digits, so that its half is one too.
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
    let scaled = u128::from(count) * u128::from(HEIGHT) / u128::from(top.max(1));
    u64::try_from(scaled).unwrap_or(HEIGHT)
}

fn pixels(tenths: u64) -> String {
    format!("{}.{}", tenths / 10, tenths % 10)
}

fn percent(hundredths: u64) -> String {
    format!("{}.{:02}%", hundredths / 100, hundredths % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn days(count: u16, figures: impl Fn(u16) -> [u64; 4]) -> Vec<DayOfCaptures> {
        let today = Day::from_number(20_778);
        let day = |before: u16| {
            let [live_done, live_failed, test_done, test_failed] = figures(before);
            DayOfCaptures {
                day: today.before(before),
                live: Ended { done: live_done, failed: live_failed },
                test: Ended { done: test_done, failed: test_failed },
            }
        };
        (0..count).rev().map(day).collect()
    }

    fn tenths(pixels: &str) -> u64 {
        pixels.replace('.', "").parse().unwrap()
    }

    #[test]
    fn the_highest_line_has_a_half() {
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
    fn figures_are_drawn_to_scale_upon_each_other() {
        let days = days(30, |before| match before {
            0 => [1, 0, 0, 0],
            3 => [40, 20, 15, 5],
            29 => [0, 0, 0, 2],
            _ => [0; 4],
        });
        let chart = Chart::of(&days).unwrap();
        assert_eq!(chart.bars.len(), 30);
        let most = &chart.bars[26];
        let classes: Vec<&str> = most.parts.iter().map(|part| part.class).collect();
        assert_eq!(classes, ["live", "live failed", "test", "test failed"]);
        let heights: Vec<u64> = most.parts.iter().map(|part| tenths(&part.height)).collect();
        assert_eq!(heights, [840, 420, 315, 105]);
        let mut floor = FLOOR;
        for part in &most.parts {
            assert_eq!(tenths(&part.y) + tenths(&part.height), floor);
            floor = tenths(&part.y);
        }
        // The 80 of that day are the highest line.
        assert_eq!((chart.lines[0].label.as_str(), tenths(&chart.lines[0].y)), ("80", floor));
        assert_eq!(chart.bars[1].parts.len(), 0);
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
    fn the_table_has_the_same_figures_and_names_the_day_that_is_not_over() {
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
    fn little_is_seen_and_nothing_is_not_drawn() {
        assert!(Chart::of(&days(30, |_| [0; 4])).is_none());
        let chart = Chart::of(&days(30, |before| if before == 1 { [999_997, 1, 1, 1] } else { [0; 4] })).unwrap();
        let parts = &chart.bars[28].parts;
        assert!(parts[1..].iter().all(|part| tenths(&part.height) == LEAST) && parts.len() == 4);
        assert!(tenths(&parts[3].y) < FLOOR - HEIGHT);
        let right = &chart.bars[29];
        assert_eq!((right.x.as_str(), right.width.as_str()), ("97.05%", "2.55%"));
    }
}
