//! Work of the page that goes on outside of its thread, which its virtual time does not wait for: storage, encryption and
//! service workers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::drive::Drive;
use super::error::CaptureError;

/// How often the page is asked before it counts as one without such work. An operation that has just been begun may not be
/// visible yet.
const LOOKS: u32 = 3;

/// An answer that takes longer than this had to wait for other work.
const SLOW: Duration = Duration::from_millis(12);

/// How long the answers are waited for.
const ANSWER_LIMIT: Duration = Duration::from_secs(3);

/// What is known about such work of one page.
#[derive(Default)]
pub(super) struct OutsideWork {
    /// True once answers were waited for.
    is_settled: AtomicBool,
}

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

/// Whether the page uses storage, encryption or a service worker now.
pub(super) async fn is_used(drive: &Drive<'_>) -> Result<bool, CaptureError> {
    let _asking = drive.clock.ask();
    for _ in 0..LOOKS {
        let began = Instant::now();
        let is_used = drive.call_script::<bool>("look", &()).await?.unwrap_or(false);
        if is_used || began.elapsed() > SLOW {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Waits until the page's operations have been answered, at most until `until`. Returns false if an answer is missing.
pub(super) async fn answered(drive: &Drive<'_>, until: Instant) -> Result<bool, CaptureError> {
    let _asking = drive.clock.ask();
    drive.outside.is_settled.store(true, Ordering::Relaxed);
    let limit = ANSWER_LIMIT.min(until.saturating_duration_since(Instant::now()));
    let arguments = AnswersArguments { for_ms: u64::try_from(limit.as_millis()).unwrap_or(u64::MAX) };
    let answers: Option<Answers> = drive.call_script("answers", &arguments).await?;
    Ok(answers.is_none_or(|answers| !answers.pending))
}

/// Returns true if the page has used storage or a service worker, and its answers were never waited for.
pub(super) async fn is_unsettled(drive: &Drive<'_>) -> Result<bool, CaptureError> {
    if drive.outside.is_settled.load(Ordering::Relaxed) {
        return Ok(false);
    }
    Ok(drive.call_script::<bool>("look", &()).await?.unwrap_or(false))
}
