//! When a page is ready: loaded, its fonts there, the images in view decoded, and nothing more to come.

use std::future::pending;
use std::ops::RangeInclusive;
use std::time::Duration;

use grabd_domain::grabs::SettledBy;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::drive::Drive;
use super::shot::Shot;
use super::watch::{Document, QUIET};
use super::{Ended, script, shot};
use crate::cdp::CallError;

const READY: &str = include_str!("ready.js");

/// Sees whether anything in the page changes within a time.
const CHANGES: &str = include_str!("changes.js");

/// How a document came to rest.
pub(super) enum Settled {
    /// It can be captured.
    Ready {
        /// Why now.
        by: SettledBy,
        /// Does it look like a protection service's challenge?
        challenge: bool,
        /// The picture, if one was taken while the page came to rest and nothing has changed since.
        shot: Option<Shot>,
    },
    /// Another document takes its place.
    Left,
}

/// A shorter wait is not worth a picture that may have to be taken again, and a longer one is for an answer that is under
/// way and will change the page.
const WORTH_OVERLAPPING: RangeInclusive<Duration> = Duration::from_millis(20)..=QUIET;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Watch {
    for_ms: u64,
}

#[derive(Deserialize)]
struct Changes {
    changed: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Arguments {
    wait_for_load: bool,
}

/// What the script found.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct Report {
    /// Can nothing in the page start anything any more?
    still: bool,
    challenge: bool,
}

/// What came of waiting for the script.
enum Step {
    Reported(Report),
    Left,
    TimeUp,
}

/// Waits until the document is ready, or its time is up.
pub(super) async fn settle(drive: &Drive<'_>, document: &Document) -> Result<Settled, Ended> {
    let up = |by, report: Report| Ok(Settled::Ready { by, challenge: report.challenge, shot: None });
    let watch = &drive.tab.watch;
    match ask(drive, document, true, load_and_settle(drive)).await? {
        Step::Left => Ok(Settled::Left),
        Step::Reported(report) if report.still && !document.head.as_ref().is_some_and(|head| head.refreshes) => {
            up(SettledBy::Quiet, report)
        }
        Step::Reported(report) => {
            let by = settle_by(drive);
            tokio::select! {
                biased;
                _ = watch.until(by, |seen| seen.has_left(&document.loader).then_some(())) => {
                    match watch.look(|seen| seen.has_left(&document.loader)) {
                        true => Ok(Settled::Left),
                        false => up(SettledBy::Deadline, report),
                    }
                }
                (quiet, shot) = come_to_rest(drive, by) => match quiet {
                    true => Ok(Settled::Ready { by: SettledBy::Quiet, challenge: report.challenge, shot }),
                    false => up(SettledBy::Deadline, report),
                },
            }
        }
        // Its load event did not come, or something it waits for did not: what the parser made of it must do.
        Step::TimeUp if watch.look(|seen| seen.parsed_at.is_some()) => {
            match ask(drive, document, false, sleep_until(settle_by(drive))).await? {
                Step::Left => Ok(Settled::Left),
                Step::Reported(report) => up(SettledBy::Deadline, report),
                Step::TimeUp => up(SettledBy::Deadline, Report::default()),
            }
        }
        Step::TimeUp => up(SettledBy::Deadline, Report::default()),
    }
}

/// Waits until the network is quiet or `by`. A picture of the viewport is taken meanwhile, since most pages have their
/// last look by now; it counts only when the page neither asked for anything nor changed while the wait lasted.
async fn come_to_rest(drive: &Drive<'_>, by: Instant) -> (bool, Option<Shot>) {
    let watch = &drive.tab.watch;
    let spec = drive.spec;
    let rest_at = watch.look(|seen| seen.rest_at(Instant::now()));
    let wait = rest_at.saturating_duration_since(Instant::now());
    if spec.full_page
        || spec.selector.is_some()
        || !spec.delay.is_zero()
        || !WORTH_OVERLAPPING.contains(&wait)
        || rest_at > by
    {
        return (watch.at_rest(by).await, None);
    }
    let before = watch.active_at();
    let arguments = Watch { for_ms: u64::try_from(wait.as_millis()).unwrap_or(0) };
    let (quiet, changes, shot) = tokio::join!(
        watch.at_rest(by),
        script::call::<Changes>(drive.tab, drive.time_left(), CHANGES, &arguments),
        shot::take(drive.tab, spec.format, None, drive.time_left()),
    );
    let same = matches!(changes, Ok(Some(Changes { changed: false }))) && watch.active_at() == before;
    match same {
        true => (quiet, shot.ok().flatten()),
        // What changed may have asked for something, and a slow page does so later than the network was listened to.
        false => (watch.at_rest(by).await, None),
    }
}

/// Runs the script until it reports, the document goes, or time is up.
async fn ask(
    drive: &Drive<'_>,
    document: &Document,
    wait_for_load: bool,
    time_up: impl Future<Output = ()>,
) -> Result<Step, Ended> {
    let left = drive.tab.watch.until(drive.deadline, |seen| seen.has_left(&document.loader).then_some(()));
    let report = async {
        match script::call::<Report>(drive.tab, drive.time_left(), READY, &Arguments { wait_for_load }).await {
            Ok(report) => Ok(Step::Reported(report.unwrap_or_default())),
            // The document went away under the script: what comes instead is about to show.
            Err(CallError::Refused { message, .. }) => {
                tracing::debug!(message, "the page's script ended early");
                pending().await
            }
            Err(error) => Err(error.into()),
        }
    };
    tokio::select! {
        biased;
        Some(()) = left => Ok(Step::Left),
        step = report => step,
        () = time_up => Ok(Step::TimeUp),
    }
}

/// Ends when the load event did not come within its time, or came and the settle budget is over.
async fn load_and_settle(drive: &Drive<'_>) {
    if drive.tab.watch.until(drive.load_by, |seen| seen.loaded_at).await.is_some() {
        sleep_until(settle_by(drive)).await;
    }
}

/// The hard stop: the settle budget after the load event, and early enough to take the picture.
fn settle_by(drive: &Drive<'_>) -> Instant {
    let loaded_at = drive.tab.watch.look(|seen| seen.loaded_at).unwrap_or_else(Instant::now);
    (loaded_at + drive.limits.settle_budget).min(drive.shoot_by)
}

/// Waits until a moment, unless the document goes first: says whether it stayed.
pub(super) async fn stay_until(drive: &Drive<'_>, document: &Document, until: Instant) -> bool {
    let left = drive.tab.watch.until(until, |seen| seen.has_left(&document.loader).then_some(()));
    timeout_at(until, left).await.ok().flatten().is_none()
}
