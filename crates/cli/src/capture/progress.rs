//! Progress messages on stderr, and the summary at the end.

use std::cell::RefCell;
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use tokio::time::Instant;

use super::outcome::Outcome;
use crate::api::{Api, describe};
use crate::failure::{Exit, NOTHING_CHARGED};
use crate::output;

/// How often the bar is redrawn.
const TICK: Duration = Duration::from_millis(100);

/// The progress bar and its counters.
pub(super) struct Progress<'a> {
    api: &'a Api,
    bar: ProgressBar,
    is_quiet: bool,
    started: Instant,
    counts: RefCell<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    all: usize,
    captured: usize,
    queued: usize,
    skipped: usize,
    failed: usize,
    hint: Option<String>,
}

impl<'a> Progress<'a> {
    /// Starts the progress display: a bar if stderr is a terminal. Each page also prints a line.
    pub(super) fn start(all: usize, skipped: usize, is_quiet: bool, api: &'a Api) -> Self {
        let is_visible = !is_quiet && std::io::stderr().is_terminal();
        let bar = if is_visible { ProgressBar::new(all as u64) } else { ProgressBar::hidden() };
        let template = if all == 1 { "{spinner} {msg} {elapsed}" } else { "{bar:30} {pos}/{len} {elapsed} {msg}" };
        bar.set_style(ProgressStyle::with_template(template).expect("the template is valid"));
        bar.set_position(skipped as u64);
        bar.set_message("capturing");
        bar.enable_steady_tick(TICK);
        let counts = RefCell::new(Counts { all, skipped, ..Counts::default() });
        Self { api, bar, is_quiet, started: Instant::now(), counts }
    }

    /// Records and prints the result of one page.
    pub(super) fn record(&self, outcome: &Outcome) {
        let mut counts = self.counts.borrow_mut();
        let seconds = outcome.duration.as_secs_f64();
        let line = match (&outcome.failure, &outcome.grab) {
            (Some(failure), _) => {
                counts.failed += 1;
                counts.hint = failure.hint();
                format!("failed    {}: {}", outcome.url, failure.message())
            }
            (None, Some(grab)) if !grab.has_ended() => {
                counts.queued += 1;
                format!("queued    {} as {}", outcome.url, grab.fields.id)
            }
            (None, grab) => {
                counts.captured += 1;
                let size = grab.as_ref().and_then(|grab| grab.fields.bytes).map(output::size).unwrap_or_default();
                let truncated = grab.as_ref().and_then(|grab| grab.fields.truncated).unwrap_or(false);
                let truncated = if truncated { ", truncated at the maximum image size" } else { "" };
                let status = grab.as_ref().and_then(|grab| grab.fields.http_status);
                let status = status.filter(|status| *status >= 400);
                let status = status.map(|status| format!(", the page returned HTTP {status}")).unwrap_or_default();
                let warnings = grab.as_ref().and_then(|grab| grab.fields.warnings.as_deref()).unwrap_or_default();
                let warnings =
                    if warnings.is_empty() { String::new() } else { format!(", warnings: {}", warnings.join(" ")) };
                let fields = grab.as_ref().map(|grab| &grab.fields);
                let challenge = fields.and_then(|fields| fields.challenge.as_deref());
                let challenge = challenge.map(|of| format!(", a bot challenge of {of}")).unwrap_or_default();
                let consent = fields.and_then(|fields| fields.consent.as_ref());
                let consent = consent.map(|of| format!(", cookie banner {} ({})", of.result, of.cmp));
                let consent = consent.unwrap_or_default();
                let difference = fields.and_then(|fields| fields.difference.as_ref());
                let difference = difference.map(|of| format!(", {}", describe(of))).unwrap_or_default();
                let hash = fields.and_then(|fields| fields.phash.as_ref());
                let hash = hash.map(|hash| format!(", phash {hash}")).unwrap_or_default();
                let notes = format!("{truncated}{status}{challenge}{consent}{difference}{hash}{warnings}");
                let file = outcome.file.as_ref().map(|file| format!(" -> {}", file.display())).unwrap_or_default();
                format!("captured  {}{file} ({size} in {seconds:.1} s{notes})", outcome.url)
            }
        };
        self.bar.inc(1);
        let wait = self.api.rate_limit().remaining();
        let message = wait.map(|left| format!("waiting {} s for the rate limit", left.as_secs() + 1));
        self.bar.set_message(message.unwrap_or_else(|| "capturing".to_owned()));
        let is_failure = outcome.failure.is_some();
        if !self.is_quiet || is_failure {
            self.bar.suspend(|| eprintln!("{line}"));
        }
    }

    /// Removes the bar and prints the summary.
    pub(super) fn finish(&self, exit: Exit) {
        self.bar.finish_and_clear();
        let counts = self.counts.borrow();
        if let Some(hint) = &counts.hint {
            match counts.all {
                1 => eprintln!("{hint}"),
                // The hint is about the page that failed last, and others may have been charged.
                _ => eprintln!("{}", hint.replace(NOTHING_CHARGED, "Captures that failed were not charged.")),
            }
        }
        if self.is_quiet || counts.all == 1 {
            return;
        }
        let tried = counts.captured + counts.queued + counts.failed;
        let parts = [
            (counts.captured, "captured"),
            (counts.queued, "queued"),
            (counts.failed, "failed"),
            (counts.skipped, "skipped"),
            (counts.all - counts.skipped - tried, "not tried"),
        ];
        let parts = parts.iter().filter(|(count, _)| *count > 0).map(|(count, label)| format!("{count} {label}"));
        let duration = HumanDuration(self.started.elapsed());
        eprintln!("\n{} of {} pages in {duration}", parts.collect::<Vec<_>>().join(", "), counts.all);
        if exit == Exit::Interrupted {
            eprintln!("Interrupted. The service finishes captures that have started: `grab list` shows them.");
        }
    }
}
