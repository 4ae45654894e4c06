//! A rate limit for each key, with a bounded number of keys.

use std::hash::Hash;
use std::num::NonZeroU32;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use governor::clock::Clock;
use governor::middleware::StateInformationMiddleware;
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

/// Keys that one limiter stores. Beyond that, new keys share one quota until old keys are removed.
const MAX_KEYS: usize = 50_000;
/// How often keys with a full quota are removed.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);

/// A quota of requests for each key.
pub struct KeyedLimiter<K: Clone + Eq + Hash> {
    /// `None` is the shared key of requests beyond `max_keys`.
    limiter: DefaultKeyedRateLimiter<Option<K>, StateInformationMiddleware>,
    limit: NonZeroU32,
    /// Time in which one request of the quota is added.
    interval: Duration,
    max_keys: usize,
    swept_at: Mutex<Instant>,
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
}

impl<K: Clone + Eq + Hash> KeyedLimiter<K> {
    /// At least one request per minute.
    pub fn per_minute(limit: u32) -> Self {
        let limit = NonZeroU32::new(limit).unwrap_or(NonZeroU32::MIN);
        Self::new(Quota::per_minute(limit), limit, Duration::from_secs(60))
    }

    /// At least one request per hour.
    pub fn per_hour(limit: u32) -> Self {
        let limit = NonZeroU32::new(limit).unwrap_or(NonZeroU32::MIN);
        Self::new(Quota::per_hour(limit), limit, Duration::from_secs(60 * 60))
    }

    /// At least one request per day.
    pub fn per_day(limit: u32) -> Self {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        let limit = NonZeroU32::new(limit).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::with_period(DAY / limit.get()).expect("the period is not zero").allow_burst(limit);
        Self::new(quota, limit, DAY)
    }

    fn new(quota: Quota, limit: NonZeroU32, period: Duration) -> Self {
        let limiter = RateLimiter::keyed(quota).with_middleware();
        let interval = period / limit.get();
        Self { limiter, limit, interval, max_keys: MAX_KEYS, swept_at: Mutex::new(Instant::now()) }
    }

    /// Takes one request from the quota of a key.
    ///
    /// # Errors
    /// When the quota is used up. Nothing is taken then.
    pub fn take(&self, key: K) -> Result<Window, Window> {
        self.sweep(Instant::now());
        let key = (self.limiter.len() < self.max_keys).then_some(key);
        let limit = self.limit.get();
        match self.limiter.check_key(&key) {
            Ok(state) => {
                let remaining = state.remaining_burst_capacity();
                Ok(Window { limit, remaining, reset_s: whole_seconds(self.interval) })
            }
            Err(until) => {
                let reset_s = whole_seconds(until.wait_time_from(self.limiter.clock().now()));
                Err(Window { limit, remaining: 0, reset_s })
            }
        }
    }

    /// Removes keys with a full quota, once a minute. Returns at once if another request is sweeping.
    fn sweep(&self, now: Instant) {
        if let Ok(mut swept_at) = self.swept_at.try_lock()
            && now.duration_since(*swept_at) >= SWEEP_INTERVAL
        {
            *swept_at = now;
            self.limiter.retain_recent();
            self.limiter.shrink_to_fit();
        }
    }
}

/// Rounds up to whole seconds, at least one.
pub fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_above_the_quota_are_rejected_per_key() {
        let limiter = KeyedLimiter::per_hour(20);
        for left in (0..20).rev() {
            let window = limiter.take(1).unwrap();
            assert_eq!((window.limit, window.reset_s), (20, 180));
            assert!(window.remaining >= left, "{window:?}");
        }
        let Err(Window { reset_s, remaining: 0, .. }) = limiter.take(1) else {
            panic!("the 21st request was admitted")
        };
        assert!((179..=180).contains(&reset_s), "{reset_s}");
        assert!(limiter.take(2).is_ok());
    }

    #[test]
    fn quota_of_a_day_can_be_used_at_once() {
        let limiter = KeyedLimiter::per_day(24);
        assert_eq!((0..30).filter(|_| limiter.take(1).is_ok()).count(), 24);
        let Err(Window { reset_s, .. }) = limiter.take(1) else { panic!("the quota is used up") };
        assert!((3599..=3600).contains(&reset_s), "{reset_s}");
    }

    #[test]
    fn number_of_keys_is_bounded() {
        let limiter = KeyedLimiter { max_keys: 10, ..KeyedLimiter::per_hour(2) };
        let admitted = (0..=255).filter(|key| limiter.take(*key).is_ok()).count();
        // Ten keys with their own quota, and two requests of the shared key, which is the eleventh.
        assert_eq!((admitted, limiter.limiter.len()), (12, 11));
    }

    #[test]
    fn sweep_removes_keys_with_a_full_quota() {
        let limit = NonZeroU32::new(1_000_000).unwrap();
        let limiter = KeyedLimiter::new(Quota::per_second(limit), limit, Duration::from_secs(1));
        for key in 0..100 {
            limiter.take(key).unwrap();
        }
        let start = *limiter.swept_at.lock().unwrap();
        limiter.sweep(start + SWEEP_INTERVAL - Duration::from_millis(1));
        assert_eq!(limiter.limiter.len(), 100);
        // Quotas are full again after a microsecond, which may not have passed before the first sweep.
        let is_emptied = (1..1000).any(|minute| {
            limiter.sweep(start + SWEEP_INTERVAL * minute);
            limiter.limiter.is_empty()
        });
        assert!(is_emptied);
    }
}
