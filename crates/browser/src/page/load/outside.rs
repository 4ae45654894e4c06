//! Work of the page that goes on outside of its thread, which its virtual time does not wait for: storage, encryption and
//! service workers.

use std::sync::atomic::Ordering;
use std::time::Duration;

use chromiumoxide::cdp::browser_protocol::storage::TrackIndexedDbForOriginParams;
use serde::{Deserialize, Serialize};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::Instant;
use url::Url;

use crate::page::context::CaptureContext;
use crate::page::error::CaptureError;
use crate::page::script::millis_until;
use crate::process::ThreadTimes;

/// How often a page is asked before it counts as one without such work. An operation that has just been begun may not be
/// visible yet.
const LOOKS: u32 = 2;

/// How often a page is asked that shows little: what it waits for may follow from a chain of operations.
const MANY_LOOKS: u32 = 24;

/// How long the answers are waited for.
const ANSWER_LIMIT: Duration = Duration::from_secs(3);

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AnswersArguments {
    for_ms: u64,
}

#[derive(Deserialize)]
struct Answers {
    /// True if an answer was missing when the time was up.
    pending: bool,
}

/// Whether a page has such work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::page) enum Use {
    /// It has none.
    Unused,
    /// It has stored something, or has a service worker.
    Exists,
    /// Something is being done now.
    Active,
}

#[derive(Default, Deserialize)]
struct Look {
    exists: bool,
    active: bool,
    /// The number of changes of the document so far.
    changes: u64,
}

/// Whether the page uses storage, encryption or a service worker, or its browser computes something for it. A page that
/// shows little is asked for longer. `changes` is the number of changes of the document before. `None` for a page that
/// changes all the time: its changes, and the work of drawing them, say nothing.
pub(in crate::page) async fn look(
    context: &CaptureContext<'_>,
    changes: Option<u64>,
    shows_little: bool,
) -> Result<Use, CaptureError> {
    let _asking = context.clock.ask();
    let before = read_thread_times(context);
    let mut exists = false;
    for _ in 0..if shows_little { MANY_LOOKS } else { LOOKS } {
        let look: Look = context.call_script("look", &()).await?.unwrap_or_default();
        exists |= look.exists;
        if look.active || changes.is_some_and(|changes| look.changes != changes) {
            return Ok(Use::Active);
        }
    }
    let is_busy = changes.is_some() && were_busy(before, read_thread_times(context)).await;
    Ok(match (is_busy, exists) {
        (true, _) => Use::Active,
        (false, true) => Use::Exists,
        (false, false) => Use::Unused,
    })
}

/// Waits until the page's operations have been answered, at most until `until`. Returns false if an answer is missing.
pub(in crate::page) async fn answered(context: &CaptureContext<'_>, until: Instant) -> Result<bool, CaptureError> {
    let _asking = context.clock.ask();
    context.has_awaited_answers.store(true, Ordering::Relaxed);
    track_databases(context);
    let until = until.min(Instant::now() + ANSWER_LIMIT);
    loop {
        let seen = || context.tab.watch.read(|seen| seen.database_changes);
        let (before, database_changes) = (read_thread_times(context), seen());
        let arguments = AnswersArguments { for_ms: millis_until(until) };
        let answers: Option<Answers> = context.call_script("answers", &arguments).await?;
        let is_busy = were_busy(before, read_thread_times(context)).await || seen() != database_changes;
        if answers.is_none_or(|answers| answers.pending) || Instant::now() >= until {
            return Ok(false);
        }
        if !is_busy {
            return Ok(true);
        }
    }
}

/// Lets the browser report changes of databases of the page's own origin.
fn track_databases(context: &CaptureContext<'_>) {
    let url = context.tab.watch.read(|seen| seen.document.as_ref().map(|document| document.url.clone()));
    if let Some(url) = url.and_then(|url| Url::parse(&url).ok()) {
        let track = TrackIndexedDbForOriginParams::new(url.origin().ascii_serialization());
        context.tab.client.tell(Some(&context.tab.session), &track);
    }
}

/// Begins to read the times while the page is asked.
fn read_thread_times(context: &CaptureContext<'_>) -> JoinHandle<ThreadTimes> {
    let browser = context.tab.browser;
    spawn_blocking(move || ThreadTimes::read(browser))
}

async fn were_busy(before: JoinHandle<ThreadTimes>, after: JoinHandle<ThreadTimes>) -> bool {
    match (before.await, after.await) {
        (Ok(before), Ok(after)) => after.were_busy_since(&before),
        (Err(_), _) | (_, Err(_)) => false,
    }
}

/// Returns true if the page has used storage or a service worker, and its answers were never waited for.
pub(in crate::page) async fn is_unsettled(context: &CaptureContext<'_>) -> Result<bool, CaptureError> {
    if context.has_awaited_answers.load(Ordering::Relaxed) {
        return Ok(false);
    }
    let look: Option<Look> = context.call_script("look", &()).await?;
    Ok(look.is_some_and(|look| look.exists || look.active))
}
