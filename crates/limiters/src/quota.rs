//! A number of requests in a time, and the state of a key.

use std::num::NonZeroU32;
use std::time::Duration;

/// A number of requests that may be made at once. Then one more is added after each interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    limit: NonZeroU32,
    interval: Duration,
}

/// State of the quota of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Requests per minute, hour or day.
    pub limit: u32,
    /// Requests that would be admitted now.
    pub remaining: u32,
    /// Seconds until one more is admitted, at least one.
    pub reset_s: u64,
    /// Whether it is the quota that all addresses of an end site share.
    pub of_end_site: bool,
}

impl Quota {
    /// At least one request per minute.
    pub fn per_minute(limit: u32) -> Self {
        Self::new(limit, Duration::from_secs(60))
    }

    /// At least one request per hour.
    pub fn per_hour(limit: u32) -> Self {
        Self::new(limit, Duration::from_secs(60 * 60))
    }

    /// At least one request per day.
    pub fn per_day(limit: u32) -> Self {
        Self::new(limit, Duration::from_secs(24 * 60 * 60))
    }

    fn new(limit: u32, period: Duration) -> Self {
        let limit = NonZeroU32::new(limit).unwrap_or(NonZeroU32::MIN);
        Self { limit, interval: (period / limit.get()).max(Duration::from_nanos(1)) }
    }

    /// As many requests as `factor` of this quota, in the same time.
    #[must_use]
    pub fn times(self, factor: NonZeroU32) -> Self {
        let limit = self.limit.saturating_mul(factor);
        Self { limit, interval: (self.interval / factor.get()).max(Duration::from_nanos(1)) }
    }

    pub(crate) const fn limit(self) -> u32 {
        self.limit.get()
    }

    pub(crate) const fn interval(self) -> Duration {
        self.interval
    }

    /// Time in which an empty quota is full again.
    pub(crate) fn period(self) -> Duration {
        self.interval.saturating_mul(self.limit.get())
    }

    /// The state after a request was admitted.
    pub(crate) fn admitted(self, remaining: u32) -> Window {
        Window { limit: self.limit(), remaining, reset_s: whole_seconds(self.interval), of_end_site: false }
    }

    /// The state after a request was refused.
    pub(crate) fn refused(self, wait: Duration) -> Window {
        Window { limit: self.limit(), remaining: 0, reset_s: whole_seconds(wait), of_end_site: false }
    }
}

/// Rounds up to whole seconds, at least one.
pub fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0)).max(1)
}
