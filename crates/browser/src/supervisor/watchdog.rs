//! Detects failures of a running browser before its grabs time out.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use chromiumoxide::cdp::browser_protocol::browser::GetVersionParams;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::browser::Browser;
use super::restart::RestartReason;
use crate::process::{Exceeded, Usage, idle_state, priority, tree};

/// How often a browser is asked for an answer.
const PING_INTERVAL: Duration = Duration::from_millis(300);

/// How long an answer may take before the browser is checked for activity.
const IDLE_CHECK_DELAY: Duration = Duration::from_millis(300);

/// The interval of these checks.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Consecutive checks without activity after which a browser counts as hung. With both delays, that takes less than two
/// seconds.
const MAX_IDLE_CHECKS: u32 = 10;

/// How long a browser that is active, or would be if it got CPU time, may take to answer. On a machine with ten times
/// the load it can handle, a healthy browser took three seconds at most.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// How often drawing is checked. A page that blocks it then costs other pages less time than their time limits.
const DRAW_CHECK_INTERVAL: Duration = Duration::from_secs(4);

/// How often memory, processes and threads are measured.
const USAGE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// How much more often that is while a grab runs, where the kernel does not limit the number of processes and threads.
const CHECKS_OF_TASKS: u32 = 4;

/// From this number of processes and threads on, a browser yields to others. An idle browser has 75, and few pages need more
/// than twice as many.
const MANY_TASKS: u32 = 200;

impl Browser {
    /// Watches for process exit, lost responses, blocked drawing, memory usage and the maximum age. Age is wall-clock
    /// time. Every wait ends with the browser.
    pub(super) async fn monitor(self: Arc<Self>) {
        // The maximum age, at which the browser is replaced.
        let old = tokio::time::sleep_until(self.started + self.limits.age);
        let (unresponsive, not_drawing, over_limit) =
            (self.stops_answering(), self.stops_drawing(), self.exceeds_limit());
        tokio::pin!(old, unresponsive, not_drawing, over_limit);
        loop {
            tokio::select! {
                // Biased, so that a browser that was given up is not checked again.
                biased;
                () = self.client.closed().cancelled() => break,
                () = self.process.exited().cancelled() => break,
                () = &mut unresponsive => self.mark_hung(),
                () = &mut not_drawing => self.mark_hung(),
                exceeded = &mut over_limit => match exceeded {
                    Some(exceeded) => self.end_page(exceeded),
                    None => self.mark_hung(),
                },
                () = &mut old, if !old.is_elapsed() => self.request_replacement(RestartReason::Age),
            }
        }
        self.client.closed().cancel();
        self.request_replacement(RestartReason::Died);
    }

    /// Returns true if the browser answers. Waits for a browser that gets no CPU time, but not for one that is idle.
    pub(super) async fn is_responsive(&self) -> bool {
        let answer = self.client.call_within(ANSWER_LIMIT, None, GetVersionParams::default());
        tokio::select! {
            biased;
            answer = answer => answer.is_ok(),
            () = self.becomes_idle() => false,
        }
    }

    /// Returns when the browser does not answer.
    async fn stops_answering(&self) {
        let mut ticks = every(PING_INTERVAL);
        loop {
            ticks.tick().await;
            if !self.is_responsive().await {
                return;
            }
        }
    }

    /// Returns when nothing in the browser has been active for a while although it was just asked for an answer. Counts
    /// checks instead of time: on a busy machine none are made while this process gets no CPU time.
    async fn becomes_idle(&self) {
        let pid = self.pid();
        // Most answers arrive before the first check. The caller drops this future when one does.
        tokio::time::sleep(IDLE_CHECK_DELAY).await;
        let mut ticks = every(IDLE_CHECK_INTERVAL);
        let (mut idle_checks, mut before) = (0, None);
        while idle_checks < MAX_IDLE_CHECKS {
            // The answer may be behind data that is being read.
            let now = match self.client.is_reading() {
                true => None,
                false => spawn_blocking(move || idle_state(pid)).await.ok().flatten(),
            };
            idle_checks = if now.is_some() && now == before { idle_checks + 1 } else { 0 };
            before = now;
            ticks.tick().await;
        }
    }

    /// Returns when the browser no longer draws. Not checked while no tab is leased.
    async fn stops_drawing(&self) {
        let mut ticks = every(DRAW_CHECK_INTERVAL);
        loop {
            ticks.tick().await;
            if !self.leased.is_empty() && !self.can_draw().await {
                return;
            }
        }
    }

    /// Measures memory, processes and threads. Returns the limit that the page of the only grab exceeds. In a browser with
    /// pages of several grabs, the largest one is ended when the memory is exceeded, and `None` is returned when no page is
    /// left to end. Where a control group enforces the limits, they are hardly ever exceeded here.
    async fn exceeds_limit(&self) -> Option<Exceeded> {
        let is_frequent = !self.has_task_limit();
        let mut ticks = every(if is_frequent { USAGE_CHECK_INTERVAL / CHECKS_OF_TASKS } else { USAGE_CHECK_INTERVAL });
        let (mut tick, mut has_yielded) = (0_u32, false);
        let pid = self.pid();
        let mut nothing_to_end = false;
        loop {
            tick = tick.wrapping_add(1);
            if is_frequent && self.leased.is_empty() && !tick.is_multiple_of(CHECKS_OF_TASKS) {
                ticks.tick().await;
                continue;
            }
            // This reads files of every process of the browser.
            let usage = spawn_blocking(move || tree::usage(pid)).await.unwrap_or_default();
            self.set_usage(usage);
            let bytes = usage.memory_bytes;
            if self.is_exclusive && !self.leased.is_empty() {
                if bytes > self.limits.memory_limit_bytes {
                    tracing::warn!(browser.pid = pid, bytes, "a page uses too much memory");
                    return Some(Exceeded::Memory);
                }
                // Below the kernel's limit, at which the page may only become slow.
                if usage.tasks > self.max_tasks / 10 * 9 {
                    tracing::warn!(browser.pid = pid, tasks = usage.tasks, "a page starts too many threads");
                    return Some(Exceeded::Tasks);
                }
            }
            if usage.tasks > MANY_TASKS && self.shares_by_thread && !has_yielded {
                tracing::debug!(browser.pid = pid, tasks = usage.tasks, "a browser with many threads yields to others");
                priority::minimize(pid);
                has_yielded = true;
                // It stays slow on a busy machine.
                self.request_replacement(RestartReason::Grabs);
            }
            if bytes > self.limits.memory_limit_bytes {
                // Ending the page frees its memory. The browser itself is measured without it.
                match spawn_blocking(move || tree::end_largest_renderer(pid)).await.ok().flatten() {
                    Some(page) => {
                        tracing::warn!(browser.pid = pid, page, bytes, "ended a page that used too much memory");
                        nothing_to_end = false;
                    }
                    // A page that has just ended may still be counted.
                    None if !nothing_to_end => nothing_to_end = true,
                    None => {
                        tracing::warn!(browser.pid = pid, bytes, "a browser without pages uses too much memory");
                        return None;
                    }
                }
            } else if bytes > self.limits.rss_bytes {
                self.request_replacement(RestartReason::Memory);
            }
            ticks.tick().await;
        }
    }

    /// The usage at the last measurement.
    pub(super) fn usage(&self) -> Usage {
        *self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_usage(&self, usage: Usage) {
        *self.usage.lock().unwrap_or_else(PoisonError::into_inner) = usage;
    }
}

/// An interval that delays missed ticks and starts after one period.
fn every(period: Duration) -> Interval {
    let mut ticks = interval_at(Instant::now() + period, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
