//! Notices what goes wrong with a running browser, before its grabs do.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use chromiumoxide::cdp::browser_protocol::browser::GetVersionParams;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::browser::{Browser, Why};
use crate::process::{Usage, stillness, tree};

/// How often a browser is asked whether it is still there.
const BEAT: Duration = Duration::from_millis(300);

/// When a browser that owes an answer is first looked at.
const OWED: Duration = Duration::from_millis(300);

/// How often it is looked at from then on.
const LOOK: Duration = Duration::from_millis(100);

/// Looks in a row that find it as still as the one before: then it hangs. With all before, that takes less than two
/// seconds.
const STILL: u32 = 10;

/// How long a browser that works, or would if it got a processor, may owe an answer. On a machine with ten times the
/// work it can do, a healthy one took three seconds at worst.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// How often it is tried whether a browser still draws: a page that keeps it from that then costs its neighbours less time
/// than they have.
const DRAW_EVERY: Duration = Duration::from_secs(4);

/// How often memory is looked at.
const MEMORY_EVERY: Duration = Duration::from_secs(1);

impl Browser {
    /// Notices the end of the process and of the browser's best years. A browser's age is time by the clock and nothing else;
    /// this wait, as every other here, ends with the browser.
    pub(super) async fn look_after(self: Arc<Self>) {
        let old = tokio::time::sleep_until(self.started + self.limits.age);
        let (hung, stuck, hungry) = (self.stops_answering(), self.stops_drawing(), self.keeps_within_memory());
        tokio::pin!(old, hung, stuck, hungry);
        loop {
            tokio::select! {
                // In this order: a browser that was given up is not looked at again.
                biased;
                () = self.client.closed().cancelled() => break,
                () = self.process.exited().cancelled() => break,
                () = &mut hung => self.give_up(),
                () = &mut stuck => self.give_up(),
                () = &mut hungry => self.give_up(),
                () = &mut old, if !old.is_elapsed() => self.replace_for(Why::Age),
            }
        }
        self.client.closed().cancel();
        self.replace_for(Why::Died);
    }

    /// Does it answer at all? A browser without a processor is waited for, one that does nothing is not.
    pub(super) async fn answers(&self) -> bool {
        let answer = self.client.call_within(ANSWER_LIMIT, None, GetVersionParams::default());
        tokio::select! {
            biased;
            answer = answer => answer.is_ok(),
            () = self.lies_still() => false,
        }
    }

    /// Returns when a question is not answered.
    async fn stops_answering(&self) {
        let mut beat = every(BEAT);
        loop {
            beat.tick().await;
            if !self.answers().await {
                return;
            }
        }
    }

    /// Returns when nothing in the browser has moved for a while, although it owes the answer to a question that was asked
    /// just now. Time by the clock says little on a busy machine, so what counts is looks: there are none while it is we
    /// who get no processor.
    async fn lies_still(&self) {
        let pid = self.pid();
        // The answer itself is the event, and whoever waits for it drops this when it comes or the browser is gone.
        tokio::time::sleep(OWED).await;
        let mut look = every(LOOK);
        let (mut still, mut before) = (0, None);
        while still < STILL {
            // While we read what it said before, the answer may be behind that.
            let now = match self.client.is_reading() {
                true => None,
                false => spawn_blocking(move || stillness(pid)).await.ok().flatten(),
            };
            still = if now.is_some() && now == before { still + 1 } else { 0 };
            before = now;
            look.tick().await;
        }
    }

    /// Returns when it no longer draws. As long as no tab is lent nobody waits for that.
    async fn stops_drawing(&self) {
        let mut looks = every(DRAW_EVERY);
        loop {
            looks.tick().await;
            if !self.lent.is_empty() && !self.draws().await {
                return;
            }
        }
    }

    /// Looks at its memory, and returns when there is too much of it and no page to end for that. Where the kernel keeps
    /// the limit, nobody is over it here.
    async fn keeps_within_memory(&self) {
        let mut look = every(MEMORY_EVERY);
        let pid = self.pid();
        let mut nothing_to_end = false;
        loop {
            // The system's processes may be many, and the file of each is read. Without a runtime there is no service.
            let usage = spawn_blocking(move || tree::usage(pid)).await.unwrap_or_default();
            self.note(usage);
            let bytes = usage.memory_bytes;
            if bytes > self.limits.rss_bytes {
                self.replace_for(Why::Memory);
            }
            if bytes > self.limits.memory_limit_bytes {
                match spawn_blocking(move || tree::end_largest_renderer(pid)).await.ok().flatten() {
                    Some(page) => {
                        tracing::warn!(browser.pid = pid, page, bytes, "a page that took too much memory is ended");
                        nothing_to_end = false;
                    }
                    // One that just ended by itself may still be counted.
                    None if !nothing_to_end => nothing_to_end = true,
                    None => {
                        tracing::warn!(browser.pid = pid, bytes, "a browser takes too much memory, and not for a page");
                        return;
                    }
                }
            }
            look.tick().await;
        }
    }

    /// What it used when its memory was last looked at.
    pub(super) fn usage(&self) -> Usage {
        *self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, usage: Usage) {
        *self.usage.lock().unwrap_or_else(PoisonError::into_inner) = usage;
    }
}

/// Ticks that never catch up, the first of them after one period.
fn every(period: Duration) -> Interval {
    let mut ticks = interval_at(Instant::now() + period, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
