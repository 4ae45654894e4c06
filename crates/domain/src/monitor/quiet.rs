//! Hours in which a monitor sends no alerts.

use std::time::Duration;

use super::cron::Cron;
use super::schedule::LocalCron;
use crate::timestamp::Timestamp;

const DAY_MINUTES: u16 = 24 * 60;
/// The longest time by which a clock change lengthens quiet hours.
const LONGEST_CLOCK_CHANGE: Duration = Duration::from_secs(60 * 60);

/// An unvalidated request for quiet hours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names of the API")]
pub struct QuietRequest {
    pub from: Option<String>,
    pub to: Option<String>,
    pub time_zone: Option<String>,
}

/// Hours of each day in which a monitor sends no alerts. They may include midnight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quiet {
    /// The first minute of the day.
    from: u16,
    /// The minute of the day at which they end.
    to: u16,
    /// Their end on each day.
    end: LocalCron,
}

impl Quiet {
    /// From one minute of the day to another one. `None` if there is no such time or time zone, or if both are equal.
    pub fn new(from: u16, to: u16, zone: &str) -> Option<Self> {
        if from == to || from >= DAY_MINUTES || to >= DAY_MINUTES {
            return None;
        }
        let end = Cron::parse(&format!("{} {} * * *", to % 60, to / 60))?;
        Some(Self { from, to, end: LocalCron::new(end, zone)? })
    }

    /// Parses a time such as `07:30` to the minute of the day.
    pub fn parse_time(text: &str) -> Option<u16> {
        let (hour, minute) = text.split_once(':')?;
        let number = |digits: &str, end: u16| {
            let is_number = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
            if is_number { digits.parse::<u16>().ok().filter(|number| *number < end) } else { None }
        };
        Some(number(hour, 24)? * 60 + number(minute, 60)?)
    }

    /// The time at which they begin, such as `22:00`.
    pub fn from(&self) -> String {
        time_text(self.from)
    }

    /// The time at which they end.
    pub fn to(&self) -> String {
        time_text(self.to)
    }

    /// The minutes of the day at which they begin and end.
    pub const fn minutes(&self) -> (u16, u16) {
        (self.from, self.to)
    }

    /// The name of the time zone.
    pub const fn zone_name(&self) -> &'static str {
        self.end.zone_name()
    }

    /// When the quiet hours end in which this time is. `None` if it is in none.
    pub fn end_after(&self, now: Timestamp) -> Option<Timestamp> {
        let minute = self.end.minute_of_day(now)?;
        let is_quiet = match self.from < self.to {
            true => (self.from..self.to).contains(&minute),
            false => minute >= self.from || minute < self.to,
        };
        if !is_quiet {
            return None;
        }
        let minutes = (self.to + DAY_MINUTES - self.from) % DAY_MINUTES;
        // Of an hour that a clock change repeats, only the first time is quiet. In the second, the next end is farther away.
        let longest = Duration::from_secs(u64::from(minutes) * 60) + LONGEST_CLOCK_CHANGE;
        self.end.next_after(now).filter(|end| end.since(now) <= longest)
    }
}

fn time_text(minute: u16) -> String {
    format!("{:02}:{:02}", minute / 60, minute % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::from_ms(text.parse::<jiff::Timestamp>().unwrap().as_millisecond())
    }

    fn quiet(from: &str, to: &str, zone: &str) -> Quiet {
        Quiet::new(Quiet::parse_time(from).unwrap(), Quiet::parse_time(to).unwrap(), zone).unwrap()
    }

    #[test]
    fn times_have_two_digits_each() {
        assert_eq!((Quiet::parse_time("00:00"), Quiet::parse_time("23:59")), (Some(0), Some(1439)));
        for text in ["", "7:00", "07:0", "24:00", "07:60", "07-00", "07:00:00", "+7:00", "７:00"] {
            assert_eq!(Quiet::parse_time(text), None, "{text}");
        }
        let night = quiet("22:00", "07:05", "europe/berlin");
        assert_eq!((night.from(), night.to(), night.zone_name()), ("22:00".into(), "07:05".into(), "Europe/Berlin"));
        assert_eq!(
            (Quiet::new(60, 60, "UTC"), Quiet::new(0, 1440, "UTC"), Quiet::new(0, 1, "Mars")),
            (None, None, None)
        );
    }

    #[test]
    fn hours_may_include_midnight_and_end_in_their_time_zone() {
        let night = quiet("22:00", "07:00", "Europe/Berlin");
        for (now, expected) in [
            ("2026-01-10T20:59:59Z", None),
            ("2026-01-10T21:00:00Z", Some("2026-01-11T06:00:00Z")),
            ("2026-01-11T05:59:59Z", Some("2026-01-11T06:00:00Z")),
            ("2026-01-11T06:00:00Z", None),
            // The night in which the clocks are set forward.
            ("2026-03-28T21:30:00Z", Some("2026-03-29T05:00:00Z")),
        ] {
            assert_eq!(night.end_after(at(now)), expected.map(at), "{now}");
        }
        let noon = quiet("12:00", "13:00", "UTC");
        assert_eq!(noon.end_after(at("2026-01-10T12:30:00Z")), Some(at("2026-01-10T13:00:00Z")));
        assert_eq!(noon.end_after(at("2026-01-10T13:00:00Z")), None);
    }

    #[test]
    fn hour_that_is_repeated_is_quiet_once() {
        // 02:00 to 03:00 happens twice on 25 October.
        let early = quiet("02:00", "02:30", "Europe/Berlin");
        assert_eq!(early.end_after(at("2026-10-25T00:10:00Z")), Some(at("2026-10-25T00:30:00Z")));
        assert_eq!(early.end_after(at("2026-10-25T01:10:00Z")), None);
    }
}
