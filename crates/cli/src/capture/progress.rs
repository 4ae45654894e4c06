//! What somebody at the terminal sees while captures go on, and the summary at their end.

use std::cell::RefCell;
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use tokio::time::Instant;

use super::Outcome;
use crate::api::Api;
use crate::failure::Exit;
use crate::output;

/// How often the bar is drawn anew while nothing happens.
const TICK: Duration = Duration::from_millis(100);

/// The bar and what it counts.
pub(super) struct Progress<'a> {
    api: &'a Api,
    bar: ProgressBar,
    is_quiet: bool,
    began: Instant,
    counts: RefCell<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    all: usize,
    captured: usize,
    queued: usize,
    passed_over: usize,
    failed: Vec<(String, String)>,
    hint: Option<String>,
}

impl<'a> Progress<'a> {
    /// Begins to count. There is a bar where somebody sits at a terminal, and a line for each page where not.
    pub(super) fn start(all: usize, passed_over: usize, is_quiet: bool, api: &'a Api) -> Self {
        let shows = !is_quiet && std::io::stderr().is_terminal();
        let bar = if shows { ProgressBar::new(all as u64) } else { ProgressBar::hidden() };
        let template = if all == 1 { "{spinner} {msg} {elapsed}" } else { "{bar:30} {pos}/{len} {elapsed} {msg}" };
        bar.set_style(ProgressStyle::with_template(template).expect("the template is ours"));
        bar.set_position(passed_over as u64);
        bar.set_message("capturing");
        bar.enable_steady_tick(TICK);
        let counts = RefCell::new(Counts { all, passed_over, ..Counts::default() });
        Self { api, bar, is_quiet, began: Instant::now(), counts }
    }

    /// Tells what came of one page.
    pub(super) fn tell(&self, outcome: &Outcome) {
        let mut counts = self.counts.borrow_mut();
        let seconds = outcome.took.as_secs_f64();
        let line = match (&outcome.failure, &outcome.grab) {
            (Some(failure), _) => {
                counts.failed.push((outcome.url.clone(), failure.told()));
                counts.hint = failure.hint();
                format!("failed    {}: {}", outcome.url, failure.told())
            }
            (None, Some(grab)) if !grab.has_ended() => {
                counts.queued += 1;
                format!("queued    {} as {}", outcome.url, grab.read.id)
            }
            (None, grab) => {
                counts.captured += 1;
                let size = grab.as_ref().and_then(|grab| grab.read.bytes).map(output::size).unwrap_or_default();
                let cut = grab.as_ref().and_then(|grab| grab.read.truncated).unwrap_or(false);
                let cut = if cut { ", cut at the longest that a picture may be" } else { "" };
                let status = grab.as_ref().and_then(|grab| grab.read.http_status);
                let status = status.filter(|status| *status >= 400);
                let status = status.map(|status| format!(", the page itself said HTTP {status}")).unwrap_or_default();
                let file = outcome.file.as_ref().map(|file| format!(" -> {}", file.display())).unwrap_or_default();
                format!("captured  {}{file} ({size} in {seconds:.1} s{cut}{status})", outcome.url)
            }
        };
        self.bar.inc(1);
        let waits = self.api.pace().remaining();
        let message = waits.map(|left| format!("waiting {} s for the rate limit", left.as_secs() + 1));
        self.bar.set_message(message.unwrap_or_else(|| "capturing".to_owned()));
        let is_failure = outcome.failure.is_some();
        if !self.is_quiet || is_failure {
            self.bar.suspend(|| eprintln!("{line}"));
        }
    }

    /// Takes the bar away and sums up.
    pub(super) fn end(&self, exit: Exit) {
        self.bar.finish_and_clear();
        let counts = self.counts.borrow();
        if let Some(hint) = &counts.hint {
            eprintln!("{hint}");
        }
        if self.is_quiet || counts.all == 1 {
            return;
        }
        let tried = counts.captured + counts.queued + counts.failed.len();
        let parts = [
            (counts.captured, "captured"),
            (counts.queued, "queued"),
            (counts.failed.len(), "failed"),
            (counts.passed_over, "there already"),
            (counts.all - counts.passed_over - tried, "not tried"),
        ];
        let parts = parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
        let took = HumanDuration(self.began.elapsed());
        eprintln!("\n{} of {} pages in {took}", parts.collect::<Vec<_>>().join(", "), counts.all);
        for (url, why) in &counts.failed {
            eprintln!("  {url}: {why}");
        }
        if exit == Exit::Interrupted {
            eprintln!("Interrupted. What the service has begun it finishes: `grab list` shows it.");
        }
    }
}
