//! Timestamps with the resolution of the database.

use std::fmt;
use std::time::Duration;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;

/// Milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Creates a timestamp from milliseconds since the epoch.
    pub const fn from_ms(ms: i64) -> Self {
        Self(ms)
    }

    /// Milliseconds since the epoch.
    pub const fn as_ms(self) -> i64 {
        self.0
    }

    /// The time elapsed since `earlier`, or zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl std::ops::Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, later: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(later.as_millis()).unwrap_or(i64::MAX)))
    }
}

impl std::ops::Sub<Duration> for Timestamp {
    type Output = Self;

    fn sub(self, earlier: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(earlier.as_millis()).unwrap_or(i64::MAX)))
    }
}

/// RFC 3339 in UTC with three fractional digits, the format of all APIs.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0) * 1_000_000)
            .unwrap_or(OffsetDateTime::UNIX_EPOCH);
        let seconds = at.replace_millisecond(0).unwrap_or(at).format(&Rfc3339).map_err(|_| fmt::Error)?;
        write!(f, "{}.{:03}Z", seconds.trim_end_matches('Z'), at.millisecond())
    }
}

/// A day in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(i64);

/// Milliseconds per day. Unix time has no leap seconds.
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

impl Day {
    /// Creates a day from the number of days since 1970-01-01.
    pub const fn from_number(days: i64) -> Self {
        Self(days)
    }

    /// Parses a day such as `2026-11-20`. `None` if it is not one.
    pub fn parse(text: &str) -> Option<Self> {
        let date = time::Date::parse(text, format_description!("[year]-[month]-[day]")).ok()?;
        Some(Self((date - OffsetDateTime::UNIX_EPOCH.date()).whole_days()))
    }

    /// The day of a timestamp.
    pub const fn of(at: Timestamp) -> Self {
        Self(at.0.div_euclid(DAY_MS))
    }

    /// The number of days since 1970-01-01.
    pub const fn number(self) -> i64 {
        self.0
    }

    /// The first millisecond of the day.
    pub const fn start(self) -> Timestamp {
        Timestamp(self.0.saturating_mul(DAY_MS))
    }

    /// The next day.
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// The day `days` days earlier.
    pub const fn before(self, days: u16) -> Self {
        Self(self.0.saturating_sub(days as i64))
    }

    /// The last `count` days up to and including this one, earliest first.
    pub fn last_days(self, count: u16) -> impl Iterator<Item = Self> {
        (0..count).rev().map(move |days| self.before(days))
    }
}

/// `2026-11-20`.
impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = self.start().to_string();
        f.write_str(start.split_once('T').map_or(start.as_str(), |(day, _)| day))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_change_at_midnight_utc() {
        let midnight = Timestamp::from_ms(1_795_132_800_000);
        let (before, day) = (Day::of(Timestamp::from_ms(midnight.as_ms() - 1)), Day::of(midnight));
        assert_eq!((before.to_string(), day.to_string()), ("2026-11-19".to_owned(), "2026-11-20".to_owned()));
        assert_eq!((day.start(), day.before(1)), (midnight, before));
        assert_eq!(day.last_days(2).collect::<Vec<_>>(), [before, day]);
        assert_eq!(Day::of(Timestamp::from_ms(-1)).to_string(), "1969-12-31");
        for day in [before, day, Day::of(Timestamp::from_ms(-1))] {
            assert_eq!(Day::parse(&day.to_string()), Some(day));
        }
        for text in ["", "2026-02-30", "20.11.2026", "2026-11-20T00:00", "99999-01-01"] {
            assert_eq!(Day::parse(text), None, "{text}");
        }
    }

    #[test]
    fn display_is_rfc_3339_with_milliseconds() {
        assert_eq!(Timestamp::from_ms(1_795_206_774_120).to_string(), "2026-11-20T20:32:54.120Z");
        assert_eq!(Timestamp::from_ms(1_795_206_774_000).to_string(), "2026-11-20T20:32:54.000Z");
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Timestamp::from_ms(5).since(Timestamp::from_ms(9)), Duration::ZERO);
        assert_eq!((Timestamp::from_ms(i64::MAX) + Duration::from_secs(1)).as_ms(), i64::MAX);
    }
}
