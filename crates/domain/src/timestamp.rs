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

#[cfg(test)]
mod tests {
    use super::*;

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
