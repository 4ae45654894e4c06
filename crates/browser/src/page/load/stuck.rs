//! Tells a browser that is slow because the machine is busy from one that does not answer.

use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout};

use crate::process::ProcessorTimes;

/// A page that does not answer for this long may be waiting in a loop for its clock, which only advances while the
/// page's process is idle. The time in which its browser waits for a processor does not count.
const STUCK: Duration = Duration::from_secs(3);

/// How long an answer may take on a machine whose processors are all in use.
pub(super) const SLOW: Duration = Duration::from_secs(10);

/// How often the times of the browser's threads are read while an answer is missing.
const TIMES_INTERVAL: Duration = Duration::from_secs(1);

/// A browser counts as idle if each of its threads had work for less than one of this many parts of the time.
const IDLE_PARTS: u32 = 4;

/// Why an answer is missing.
pub(super) enum Stuck {
    /// A thread of the browser works.
    Busy,
    /// All threads of the browser wait: it has lost the frame. On a busy machine, Chromium 156 does so now and then when an
    /// animated image is replaced by a canvas, and draws no frame after it.
    Idle,
}

/// The result of `answer`, unless `browser` does not answer although it has processors.
pub(super) async fn unless_stuck<T>(browser: u32, answer: impl Future<Output = T>) -> Result<T, Stuck> {
    let mut answer = std::pin::pin!(answer);
    let began = Instant::now();
    let mut first: Option<(ProcessorTimes, Instant)> = None;
    loop {
        if let Ok(answer) = timeout(TIMES_INTERVAL, &mut answer).await {
            return Ok(answer);
        }
        let times = spawn_blocking(move || ProcessorTimes::read(browser)).await.unwrap_or_default();
        let Some((first, read_at)) = &first else {
            first = Some((times, Instant::now()));
            continue;
        };
        let waited = times.longest_wait_since(first);
        if began.elapsed() >= SLOW || began.elapsed().saturating_sub(waited) >= STUCK {
            return Err(match times.longest_work_since(first) < read_at.elapsed() / IDLE_PARTS {
                true => Stuck::Idle,
                false => Stuck::Busy,
            });
        }
    }
}
