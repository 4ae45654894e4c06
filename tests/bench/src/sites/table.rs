//! The table of a comparison: how many pictures of each mode are right, and how long they took.

use std::fmt::Write as _;
use std::time::Duration;

use super::corpus::Mode;
use super::rows::{Correctness, Row};
use crate::measure::Sample;

const HEADS: [&str; 10] = [
    "Mode",
    "pictures",
    "right",
    "wrong, with a warning",
    "wrong without one",
    "failed",
    "restless",
    "Playwright right",
    "grabd, ms",
    "Playwright, ms",
];

/// The table as Markdown.
pub(super) fn table(rows: &[Row]) -> String {
    let mut text = line(&HEADS.map(str::to_owned));
    text.push_str(&line(&HEADS.map(|_| "---".to_owned())));
    for mode in Mode::ALL {
        let of_mode: Vec<&Row> = rows.iter().filter(|row| row.mode == mode).collect();
        if !of_mode.is_empty() {
            text.push_str(&line(&cells(mode.name(), &of_mode)));
        }
    }
    let all: Vec<&Row> = rows.iter().collect();
    text.push_str(&line(&cells("all", &all)));
    let _ = writeln!(text, "\nTime of grabd where both are right: {} of Playwright's (median ratio).", ratio(&all));
    text
}

fn line(cells: &[String; HEADS.len()]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

fn cells(name: &str, rows: &[&Row]) -> [String; HEADS.len()] {
    let count = |verdict: Correctness| rows.iter().filter(|row| row.verdict() == verdict).count();
    let wrong = |warned: bool| {
        rows.iter().filter(|row| row.verdict() == Correctness::Wrong && row.is_warned() == warned).count()
    };
    let others: Vec<_> = rows.iter().filter_map(|row| row.playwright.as_ref()).collect();
    let others_right = others.iter().filter(|other| other.verdict == Correctness::Right).count();
    [
        name.to_owned(),
        rows.len().to_string(),
        count(Correctness::Right).to_string(),
        wrong(true).to_string(),
        wrong(false).to_string(),
        count(Correctness::Failed).to_string(),
        count(Correctness::Restless).to_string(),
        format!("{others_right} of {}", others.len()),
        median(rows.iter().map(|row| row.grabd.ms)),
        median(others.iter().map(|other| other.ms)),
    ]
}

fn median(values: impl Iterator<Item = f64>) -> String {
    let mut sample = Sample::default();
    values.for_each(|ms| sample.add(Duration::from_secs_f64(ms / 1000.0)));
    format!("{:.0}", sample.quantile(0.5))
}

/// The median of the ratios of the times of pages that both captured correctly.
fn ratio(rows: &[&Row]) -> String {
    let mut sample = Sample::default();
    for row in rows.iter().filter(|row| row.verdict() == Correctness::Right) {
        if let Some(other) = row.playwright.as_ref().filter(|other| other.verdict == Correctness::Right) {
            sample.add(Duration::from_secs_f64(row.grabd.ms / other.ms.max(1.0)));
        }
    }
    format!("{:.2}", sample.quantile(0.5) / 1000.0)
}

/// Pages that took grabd much longer than Playwright, slowest first, as lines of text.
pub(super) fn slow(rows: &[Row], factor: f64) -> String {
    let mut slow: Vec<(f64, &Row)> = rows
        .iter()
        .filter_map(|row| Some((row.grabd.ms / row.playwright.as_ref()?.ms.max(1.0), row)))
        .filter(|(ratio, _)| *ratio > factor)
        .collect();
    slow.sort_by(|one, two| two.0.total_cmp(&one.0));
    let mut text = String::new();
    for (ratio, row) in slow {
        let (page, mode, ms) = (&row.page, row.mode.name(), row.grabd.ms);
        let _ =
            writeln!(text, "{ratio:6.2}  {ms:6.0} ms  {mode:<8} {page}  {} {}", row.settled_by, row.warnings.join(" "));
    }
    text
}
