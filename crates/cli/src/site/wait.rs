//! Waits until a job has ended.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use reqwest::Method;
use serde_json::Value;

use super::rows;
use crate::api::Api;
use crate::failure::Failure;
use crate::list;
use crate::values::text;

/// The first pause between two requests for the state. Each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How often the bar is redrawn.
const TICK: Duration = Duration::from_millis(100);

/// Waits until the job has ended, and shows how far it is. The service ends each job.
pub(super) async fn until_finished(api: &Api, is_quiet: bool, site: Value) -> Result<Value, Failure> {
    let path = list::path("sites", &text(&site["id"]))?;
    let progress = Progress::start(is_quiet);
    let (mut site, mut pause, mut shown) = (site, FIRST_PAUSE, Shown::default());
    loop {
        progress.show(&site, &mut shown);
        if has_ended(&site) {
            progress.bar.finish_and_clear();
            return Ok(site);
        }
        // The API has no request that waits for a job, and no stream of its events: the state is asked for, ever less often.
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
        site = api.call(Method::GET, &path).send().await?.body;
    }
}

/// Whether nothing of a job changes any more. One that was canceled may still have captures that have begun.
fn has_ended(site: &Value) -> bool {
    site["finished_at"].is_string()
}

/// What was shown last, so that each line is printed once.
#[derive(Default)]
struct Shown {
    state: String,
    /// The code of the error that says why the job waits. Its message may count seconds.
    waiting: Option<String>,
}

/// A bar if stderr is a terminal, and otherwise a line for each state. Both have a line about why the job waits.
struct Progress {
    bar: ProgressBar,
    has_lines: bool,
}

impl Progress {
    fn start(is_quiet: bool) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        let bar = if is_terminal && !is_quiet { ProgressBar::new(0) } else { ProgressBar::hidden() };
        let template = "{bar:30} {pos}/{len} {elapsed} {msg}";
        bar.set_style(ProgressStyle::with_template(template).expect("the template is valid"));
        bar.enable_steady_tick(TICK);
        Self { bar, has_lines: !is_terminal && !is_quiet }
    }

    fn show(&self, site: &Value, shown: &mut Shown) {
        let count = |name: &str| site["pages"][name].as_u64().unwrap_or(0);
        let (captured, failed) = (count("captured"), count("failed"));
        self.bar.set_length(count("found").saturating_sub(count("skipped")));
        self.bar.set_position(captured + failed);
        let state = text(&site["state"]);
        let failures = if failed > 0 { format!(", {failed} failed") } else { String::new() };
        self.bar.set_message(format!("{state}{failures}"));
        if self.has_lines && shown.state != state {
            eprintln!("{state:11} {captured} of {} pages", count("found"));
        }
        let error = rows::waiting_because(site);
        let waiting = error.map(|error| text(&error["code"]));
        if let Some(error) = error
            && shown.waiting != waiting
        {
            self.line(&format!("waiting     {}", text(&error["message"])));
        }
        *shown = Shown { state, waiting };
    }

    /// Prints a line, above the bar if there is one.
    fn line(&self, line: &str) {
        if self.has_lines {
            eprintln!("{line}");
        } else {
            self.bar.println(line);
        }
    }
}
