//! Whether the wall clock can be trusted. A wrong clock would end every lease, expire every lot and delete everything
//! that has a retention.

use std::time::{Duration, Instant};

use grabd_domain::Timestamp;
use grabd_domain::limits::LEASE_MARGIN;

/// Difference between wall clock and monotonic clock that counts as a jump.
const JUMP: Duration = Duration::from_secs(5);
/// A longer jump must be confirmed by the database's clock before anything is deleted; so must the clock at the start.
/// Also the maximum difference between the two clocks.
const MUST_BE_CONFIRMED: Duration = Duration::from_secs(10 * 60);

/// Compares the wall clock with the monotonic clock. After a jump, nothing is treated as overdue for one lease margin,
/// since only the clock may be wrong.
#[derive(Debug)]
pub(super) struct ClockCheck {
    wall: Timestamp,
    monotonic: Instant,
    distrusted_until: Option<Instant>,
    is_confirmed: bool,
}

impl ClockCheck {
    pub(super) const fn new(wall: Timestamp, monotonic: Instant) -> Self {
        Self { wall, monotonic, distrusted_until: None, is_confirmed: false }
    }

    /// Whether leases and deadlines may be judged by this time. Called on every tick.
    pub(super) fn is_trusted(&mut self, wall: Timestamp, monotonic: Instant) -> bool {
        let wall_ms = wall.as_ms().saturating_sub(self.wall.as_ms());
        let monotonic_ms = i64::try_from((monotonic - self.monotonic).as_millis()).unwrap_or(i64::MAX);
        (self.wall, self.monotonic) = (wall, monotonic);
        let jump = Duration::from_millis(wall_ms.abs_diff(monotonic_ms));
        if jump > JUMP {
            tracing::warn!(
                by_ms = wall_ms.saturating_sub(monotonic_ms),
                "the wall clock jumped; sweeps are paused for one lease margin"
            );
            self.distrusted_until = Some(monotonic + LEASE_MARGIN);
        }
        if jump > MUST_BE_CONFIRMED {
            self.is_confirmed = false;
        }
        self.distrusted_until.is_none_or(|until| monotonic >= until)
    }

    /// Whether expired things may be deleted.
    pub(super) const fn is_confirmed(&self) -> bool {
        self.is_confirmed
    }

    /// Compares the time of the last tick with that of the database.
    pub(super) fn confirm(&mut self, database: Timestamp) -> bool {
        let difference = Duration::from_millis(self.wall.as_ms().abs_diff(database.as_ms()));
        self.is_confirmed = difference <= MUST_BE_CONFIRMED;
        self.is_confirmed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);
    const TICK: Duration = Duration::from_millis(500);

    fn minutes(minutes: u64) -> Duration {
        Duration::from_secs(60 * minutes)
    }

    #[test]
    fn jump_pauses_sweeps_for_one_lease_margin() {
        let (clock, start) = (Clock::manual(NOW), Instant::now());
        let mut check = ClockCheck::new(clock.now(), start);
        clock.advance(TICK);
        assert!(check.is_trusted(clock.now(), start + TICK));
        clock.advance(TICK + JUMP + Duration::from_millis(1));
        assert!(!check.is_trusted(clock.now(), start + TICK * 2));
        clock.advance(LEASE_MARGIN);
        assert!(check.is_trusted(clock.now(), start + TICK * 2 + LEASE_MARGIN));
    }

    #[test]
    fn only_a_long_jump_must_be_confirmed() {
        let (clock, start) = (Clock::manual(NOW), Instant::now());
        let mut check = ClockCheck::new(clock.now(), start);
        assert!(!check.is_confirmed(), "the clock at the start");
        assert!(check.confirm(clock.now() + minutes(10)));
        clock.advance(minutes(10));
        check.is_trusted(clock.now(), start);
        assert!(check.is_confirmed());
        clock.advance(minutes(10) + Duration::from_millis(1));
        check.is_trusted(clock.now(), start);
        assert!(!check.is_confirmed());
        // The database disagrees, then agrees.
        assert!(!check.confirm(NOW));
        assert!(!check.is_confirmed());
        assert!(check.confirm(clock.now()));
        assert!(check.is_confirmed());
    }

    #[test]
    fn jump_backwards_must_be_confirmed_too() {
        let start = Instant::now();
        let mut check = ClockCheck::new(NOW, start);
        assert!(check.confirm(NOW));
        check.is_trusted(NOW - minutes(11), start + TICK);
        assert!(!check.is_confirmed());
    }
}
