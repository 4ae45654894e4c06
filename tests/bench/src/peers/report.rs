//! The measurement as Markdown, which is also readable on a terminal.

use std::fmt::Write as _;

use super::load::Load;
use super::page::{ImageSize, Page};
use crate::markdown::table;
use crate::measure::Sample;

/// What was measured for one contender and page.
#[derive(Default)]
pub(super) struct Cell {
    pub(super) latency: Sample,
    /// The size of the last image.
    pub(super) image: Option<ImageSize>,
    /// One for each concurrency.
    pub(super) loads: Vec<Load>,
    /// The first failure at concurrency 1.
    pub(super) error: Option<String>,
}

/// One page with a cell for each contender.
pub(super) struct Row {
    pub(super) page: Page,
    pub(super) cells: Vec<Cell>,
}

/// The tables, by page and contender. The first contender is the one that others are compared with.
pub(super) fn tables(names: &[&str], concurrency: &[usize], rows: &mut [Row]) -> String {
    let mut text = String::from("## Latency\n\nMilliseconds at concurrency 1, as `p50 / p90`.\n\n");
    let mut cells = vec![heads("Page", names)];
    for row in rows.iter_mut() {
        let times = row.cells.iter_mut().map(|cell| {
            let (median, tail) = (cell.latency.quantile(0.5), cell.latency.quantile(0.9));
            if median.is_nan() { "failed".to_owned() } else { format!("{median:.0} / {tail:.0}") }
        });
        let times: Vec<String> = times.collect();
        cells.push(std::iter::once(row.page.name.to_owned()).chain(times).collect());
    }
    text.push_str(&table(&cells));

    for (at, level) in concurrency.iter().enumerate() {
        let _ = write!(text, "\n## At concurrency {level}\n\n");
        let _ = write!(text, "Captures per second; processor seconds per capture; most memory in MiB.\n\n");
        let mut cells = vec![heads("Page", names)];
        for row in rows.iter() {
            let loads = row.cells.iter().map(|cell| cell.loads.get(at).map_or_else(String::new, describe));
            cells.push(std::iter::once(row.page.name.to_owned()).chain(loads).collect());
        }
        text.push_str(&table(&cells));
    }

    text.push_str("\n## Images\n\nWidth, height and kilobytes of an image. All tools made PNG files.\n\n");
    let mut cells = vec![heads("Page", names)];
    for row in rows.iter() {
        let images = row.cells.iter().map(|cell| {
            cell.image.map_or_else(
                || "none".to_owned(),
                |image| format!("{}×{}, {}", image.width, image.height, image.bytes.div_ceil(1000)),
            )
        });
        cells.push(std::iter::once(row.page.name.to_owned()).chain(images).collect());
    }
    text.push_str(&table(&cells));
    text.push_str(&failures(names, concurrency, rows));
    text
}

fn describe(load: &Load) -> String {
    if load.captures == 0 {
        return "failed".to_owned();
    }
    let mark = if load.failures > 0 { format!(" ({} failed)", load.failures) } else { String::new() };
    format!("{:.2}; {:.2}; {:.0}{mark}", load.per_second(), load.cpu_each(), load.peak_mib)
}

/// Lists the first failure of each tool and page.
fn failures(names: &[&str], concurrency: &[usize], rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        for (name, cell) in names.iter().zip(&row.cells) {
            let page = row.page.name;
            if let Some(error) = &cell.error {
                let _ = writeln!(text, "- {name}, {page}, latency: {error}");
            }
            for (level, load) in concurrency.iter().zip(&cell.loads) {
                if let Some(error) = &load.error {
                    let count = load.failures;
                    let _ =
                        writeln!(text, "- {name}, {page}, concurrency {level}, {count} failures, the first: {error}");
                }
            }
        }
    }
    match text.is_empty() {
        true => "\nNo capture failed.\n".to_owned(),
        false => format!("\n## Failures\n\n{text}"),
    }
}

fn heads(first: &str, names: &[&str]) -> Vec<String> {
    std::iter::once(first).chain(names.iter().copied()).map(str::to_owned).collect()
}
