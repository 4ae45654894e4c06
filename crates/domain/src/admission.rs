//! Admission of renders: how long a synchronous grab will wait, which slots are kept for payers that have paid, and how many
//! seconds of failed renders a payer may use.

use std::time::Duration;

use crate::ids::{PayerId, TeamId};
use crate::timestamp::Timestamp;

/// The payer that a render is counted for. All teams with the same first owner are one payer, so that more teams do
/// not get more slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payer {
    /// The first owner, or the team itself if nobody owns it.
    pub id: PayerId,
    /// Whether the payer ever paid for credits.
    pub has_paid: bool,
}

impl Payer {
    /// The payer of a team without an owner that never paid.
    pub const fn of_team(team: TeamId) -> Self {
        Self { id: PayerId(team.0), has_paid: false }
    }

    /// The payer that the captures of its signed links are counted for.
    #[must_use]
    pub fn for_links(self) -> Self {
        Self { id: self.id.for_links(), ..self }
    }
}

/// Number of slots kept for payers that have paid: this share of all, rounded up, but never the last one.
pub fn kept_slots(slots: usize, percent: u32) -> usize {
    let share = usize::try_from(percent).unwrap_or(usize::MAX).saturating_mul(slots).div_ceil(100);
    share.min(slots.saturating_sub(1))
}

/// How fast some slots work off their queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throughput {
    /// Number of slots.
    pub slots: usize,
    /// Number of slots that are idle now.
    pub idle: usize,
    /// Usual duration of a render.
    pub render: Duration,
}

impl Throughput {
    /// Expected time until a slot is free for a grab behind `ahead` others. `None` without slots.
    pub fn wait(&self, ahead: u64) -> Option<Duration> {
        let slots = u32::try_from(self.slots).unwrap_or(u32::MAX);
        let turns = (ahead + 1).saturating_sub(u64::try_from(self.idle).unwrap_or(u64::MAX));
        let turns = u32::try_from(turns).unwrap_or(u32::MAX);
        (slots > 0).then(|| self.render.saturating_mul(turns) / slots)
    }
}

/// Number of waiting grabs that are leased before a new one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueAhead {
    /// Of all payers.
    pub all: u64,
    /// Of payers that have paid.
    pub paid: u64,
}

/// The longest wait with which a grab is accepted, and what the expected wait is calculated from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitLimit {
    /// The longest expected wait.
    pub longest: Duration,
    /// The slots that the payer shares with all others.
    pub shared: Throughput,
    /// The slots that only payers that have paid get, if this is one.
    pub kept: Option<Throughput>,
}

impl WaitLimit {
    /// The expected wait for the first slot of either kind. Zero if there are no slots, since the wait is unknown.
    pub fn expected(&self, ahead: QueueAhead) -> Duration {
        let kept = self.kept.and_then(|kept| kept.wait(ahead.paid));
        self.shared.wait(ahead.all).into_iter().chain(kept).min().unwrap_or_default()
    }

    /// The expected wait, if it is too long.
    pub fn exceeded(&self, ahead: QueueAhead) -> Option<Duration> {
        Some(self.expected(ahead)).filter(|wait| *wait > self.longest)
    }
}

/// Exponentially smoothed duration of renders. One render changes it by an eighth of the difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenderTime(Duration);

/// Assumed duration before the first render.
const FIRST_GUESS: Duration = Duration::from_secs(2);
const SMOOTHING: u32 = 8;

impl Default for RenderTime {
    fn default() -> Self {
        Self(FIRST_GUESS)
    }
}

impl RenderTime {
    /// Adds a render.
    pub fn observe(&mut self, took: Duration) {
        self.0 = (self.0 * (SMOOTHING - 1) + took) / SMOOTHING;
    }

    /// The smoothed duration.
    pub const fn smoothed(self) -> Duration {
        self.0
    }
}

/// A token bucket of failed render time. It holds what is refilled in one minute, and may be overdrawn, since the
/// duration of a render is known only at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailureBudget {
    /// In milliseconds times [`MINUTE_S`], so that refilling rounds nothing.
    level: i64,
    at: Timestamp,
}

const MINUTE_S: i64 = 60;

impl FailureBudget {
    /// A full bucket.
    pub fn full(seconds_per_minute: u32, now: Timestamp) -> Self {
        Self { level: capacity(seconds_per_minute), at: now }
    }

    /// Refills the bucket.
    fn refill(&mut self, seconds_per_minute: u32, now: Timestamp) {
        let passed_ms = i64::try_from(now.since(self.at).as_millis()).unwrap_or(i64::MAX);
        let added = passed_ms.saturating_mul(seconds_per_minute.into());
        self.level = self.level.saturating_add(added).min(capacity(seconds_per_minute));
        self.at = now;
    }

    /// Takes the duration of a failed render.
    pub fn spend(&mut self, seconds_per_minute: u32, took: Duration, now: Timestamp) {
        self.refill(seconds_per_minute, now);
        let took_ms = i64::try_from(took.as_millis()).unwrap_or(i64::MAX);
        self.level = self.level.saturating_sub(took_ms.saturating_mul(MINUTE_S));
    }

    /// Time until the bucket is no longer empty. Zero if it is not.
    pub fn wait(mut self, seconds_per_minute: u32, now: Timestamp) -> Duration {
        self.refill(seconds_per_minute, now);
        if self.level > 0 {
            return Duration::ZERO;
        }
        let missing = self.level.unsigned_abs().saturating_add(1);
        Duration::from_millis(missing.div_ceil(u64::from(seconds_per_minute.max(1))))
    }

    /// Whether the bucket is full, and need not be remembered.
    pub fn is_full(mut self, seconds_per_minute: u32, now: Timestamp) -> bool {
        self.refill(seconds_per_minute, now);
        self.level >= capacity(seconds_per_minute)
    }
}

fn capacity(seconds_per_minute: u32) -> i64 {
    i64::from(seconds_per_minute).saturating_mul(1000 * MINUTE_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_ms(seconds * 1000)
    }

    #[test]
    fn wait_is_the_queue_over_the_slots_times_the_render_time() {
        let busy = Throughput { slots: 4, idle: 0, render: 8 * S };
        for (ahead, expected) in [(0, 2), (1, 4), (3, 8), (11, 24)] {
            assert_eq!(busy.wait(ahead), Some(expected * S), "{ahead} ahead");
        }
        let idle = Throughput { idle: 2, ..busy };
        assert_eq!((idle.wait(1), idle.wait(2)), (Some(Duration::ZERO), Some(2 * S)));
        assert_eq!(Throughput { slots: 0, ..busy }.wait(0), None);
        assert!(busy.wait(u64::MAX - 1).is_some());
    }

    #[test]
    fn grab_is_refused_only_when_all_its_slots_are_too_slow() {
        let shared = Throughput { slots: 3, idle: 0, render: 24 * S };
        let unpaid = WaitLimit { longest: 23 * S, shared, kept: None };
        let ahead = QueueAhead { all: 60, paid: 0 };
        assert_eq!(unpaid.exceeded(ahead), Some(488 * S));
        assert_eq!(unpaid.exceeded(QueueAhead { all: 1, paid: 0 }), None);
        let kept = Throughput { slots: 1, idle: 0, render: S };
        let paid = WaitLimit { kept: Some(kept), ..unpaid };
        assert_eq!((paid.expected(ahead), paid.exceeded(ahead)), (S, None));
        assert_eq!(paid.exceeded(QueueAhead { all: 80, paid: 23 }), Some(24 * S));
        assert_eq!(paid.exceeded(QueueAhead { all: 80, paid: 22 }), None, "a wait as long as the limit is accepted");
        let unknown = WaitLimit { shared: Throughput { slots: 0, ..shared }, ..unpaid };
        assert_eq!(unknown.exceeded(ahead), None);
    }

    #[test]
    fn kept_slots_are_rounded_up_and_never_all() {
        for (slots, percent, expected) in
            [(4, 25, 1), (16, 25, 4), (3, 25, 1), (2, 25, 1), (1, 25, 0), (0, 25, 0), (4, 0, 0), (4, 100, 3)]
        {
            assert_eq!(kept_slots(slots, percent), expected, "{percent} % of {slots}");
        }
    }

    #[test]
    fn render_time_follows_recent_renders() {
        let mut time = RenderTime::default();
        time.observe(10 * S);
        assert_eq!(time.smoothed(), 3 * S);
        (0..60).for_each(|_| time.observe(S));
        assert!(time.smoothed() < Duration::from_millis(1010));
    }

    #[test]
    fn empty_budget_is_refilled_at_its_rate() {
        let mut budget = FailureBudget::full(20, at(0));
        budget.spend(20, 19 * S, at(0));
        assert_eq!(budget.wait(20, at(0)), Duration::ZERO);
        // Overdrawn by 24 s, at 20 s per minute.
        budget.spend(20, 25 * S, at(0));
        assert_eq!(budget.wait(20, at(0)), Duration::from_millis(72_001));
        assert_eq!(budget.wait(20, at(72)), Duration::from_millis(1));
        assert_eq!(budget.wait(20, at(73)), Duration::ZERO);
        // A higher rate, because the payer has paid, is used from then on.
        assert_eq!(budget.wait(60, at(0)), Duration::from_millis(24_001));
    }

    #[test]
    fn budget_never_holds_more_than_one_minute() {
        let mut budget = FailureBudget::full(20, at(0));
        budget.spend(20, S, at(0));
        assert!(!budget.is_full(20, at(2)) && budget.is_full(20, at(3)));
        budget.spend(20, 20 * S, at(100_000));
        assert_ne!(budget.wait(20, at(100_000)), Duration::ZERO, "an idle account saves nothing");
        assert_ne!(budget.wait(20, at(0)), Duration::ZERO, "a clock that is set back adds nothing");
    }
}
