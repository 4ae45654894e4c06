//! A point in time with the resolution we store.

use std::fmt;
use std::time::Duration;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// From milliseconds since the epoch.
    pub const fn from_ms(ms: i64) -> Self {
        Self(ms)
    }

    /// Milliseconds since the epoch.
    pub const fn as_ms(self) -> i64 {
        self.0
    }

    /// How long after `earlier` this is; zero when it is not after it.
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

/// RFC 3339 in UTC with three fractional digits, as every wire shows it.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0) * 1_000_000)
            .unwrap_or(OffsetDateTime::UNIX_EPOCH);
        let seconds = at.replace_millisecond(0).unwrap_or(at).format(&Rfc3339).map_err(|_| fmt::Error)?;
        write!(f, "{}.{:03}Z", seconds.trim_end_matches('Z'), at.millisecond())
    }
}

/// A day of UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(i64);

/// Milliseconds of a day. UTC has no longer ones as far as the epoch is concerned.
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

impl Day {
    /// The day so many days after 1970-01-01.
    pub const fn from_number(days: i64) -> Self {
        Self(days)
    }

    /// The day that a point in time lies in.
    pub const fn of(at: Timestamp) -> Self {
        Self(at.0.div_euclid(DAY_MS))
    }

    /// Its first millisecond.
    pub const fn begins(self) -> Timestamp {
        Timestamp(self.0.saturating_mul(DAY_MS))
    }

    /// The day after it.
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// The day so many days before this one.
    pub const fn before(self, days: u16) -> Self {
        Self(self.0.saturating_sub(days as i64))
    }

    /// The days up to this one, so many in all, the earliest first.
    pub fn and_those_before(self, count: u16) -> impl Iterator<Item = Self> {
        (0..count).rev().map(move |days| self.before(days))
    }
}

/// `2026-11-20`.
impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moment = self.begins().to_string();
        f.write_str(moment.split_once('T').map_or(moment.as_str(), |(day, _)| day))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_ends_at_midnight_of_utc() {
        let midnight = Timestamp::from_ms(1_795_132_800_000);
        let (eve, day) = (Day::of(Timestamp::from_ms(midnight.as_ms() - 1)), Day::of(midnight));
        assert_eq!((eve.to_string(), day.to_string()), ("2026-11-19".to_owned(), "2026-11-20".to_owned()));
        assert_eq!((day.begins(), day.before(1)), (midnight, eve));
        assert_eq!(day.and_those_before(2).collect::<Vec<_>>(), [eve, day]);
        assert_eq!(Day::of(Timestamp::from_ms(-1)).to_string(), "1969-12-31");
    }

    #[test]
    fn shows_rfc_3339_with_three_digits() {
        assert_eq!(Timestamp::from_ms(1_795_206_774_120).to_string(), "2026-11-20T20:32:54.120Z");
        assert_eq!(Timestamp::from_ms(1_795_206_774_000).to_string(), "2026-11-20T20:32:54.000Z");
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Timestamp::from_ms(5).since(Timestamp::from_ms(9)), Duration::ZERO);
        assert_eq!((Timestamp::from_ms(i64::MAX) + Duration::from_secs(1)).as_ms(), i64::MAX);
    }
}
