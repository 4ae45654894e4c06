//! A quota for each key.

use std::hash::Hash;
use std::time::Instant;

use parking_lot::Mutex;

use crate::buckets::Buckets;
use crate::quota::{Quota, Window};

/// Keys that one quota stores.
pub(crate) const MAX_KEYS: usize = 50_000;

/// A quota of requests for each key. Beyond 50,000 keys those with the most left are forgotten.
pub struct KeyedLimiter<K> {
    quota: Quota,
    buckets: Mutex<Buckets<K, ()>>,
}

impl<K: Clone + Eq + Hash + Ord> KeyedLimiter<K> {
    /// The same quota for each key.
    pub fn new(quota: Quota) -> Self {
        Self::with_max_keys(quota, MAX_KEYS)
    }

    /// At least one request per minute.
    pub fn per_minute(limit: u32) -> Self {
        Self::new(Quota::per_minute(limit))
    }

    /// At least one request per hour.
    pub fn per_hour(limit: u32) -> Self {
        Self::new(Quota::per_hour(limit))
    }

    /// At least one request per day.
    pub fn per_day(limit: u32) -> Self {
        Self::new(Quota::per_day(limit))
    }

    fn with_max_keys(quota: Quota, max_keys: usize) -> Self {
        Self { quota, buckets: Mutex::new(Buckets::new(max_keys, |_| ())) }
    }

    /// Takes one request from the quota of a key.
    ///
    /// # Errors
    /// When the quota is used up. Nothing is taken then.
    pub fn take(&self, key: &K) -> Result<Window, Window> {
        self.take_of(key, self.quota)
    }

    /// The same for a key with a quota of its own.
    ///
    /// # Errors
    /// When the quota is used up. Nothing is taken then.
    pub fn take_of(&self, key: &K, quota: Quota) -> Result<Window, Window> {
        let taken = self.buckets.lock().take(key, quota, Instant::now());
        taken.map(|remaining| quota.admitted(remaining)).map_err(|wait| quota.refused(wait))
    }

    /// Returns a request that was taken with this quota.
    pub fn give_back(&self, key: &K, quota: Quota) {
        self.buckets.lock().give_back(key, quota);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn requests_above_the_quota_are_rejected_per_key() {
        let limiter = KeyedLimiter::per_hour(20);
        for left in (0..20).rev() {
            let window = limiter.take(&1).unwrap();
            assert_eq!((window.limit, window.remaining, window.reset_s), (20, left, 180));
        }
        let Err(Window { limit: 20, remaining: 0, reset_s, of_end_site: false }) = limiter.take(&1) else {
            panic!("the 21st request was admitted")
        };
        assert!((179..=180).contains(&reset_s), "{reset_s}");
        assert!(limiter.take(&2).is_ok());
        limiter.give_back(&1, Quota::per_hour(20));
        assert!(limiter.take(&1).is_ok() && limiter.take(&1).is_err());
    }

    #[test]
    fn quota_of_a_day_can_be_used_at_once() {
        let limiter = KeyedLimiter::per_day(24);
        assert_eq!((0..30).filter(|_| limiter.take(&1).is_ok()).count(), 24);
        let Err(Window { reset_s, .. }) = limiter.take(&1) else { panic!("the quota is used up") };
        assert!((3599..=3600).contains(&reset_s), "{reset_s}");
    }

    #[test]
    fn key_with_a_quota_of_its_own_has_that() {
        let limiter = KeyedLimiter::per_minute(60);
        assert!(limiter.take_of(&1, Quota::per_minute(1)).is_ok());
        assert!(limiter.take_of(&1, Quota::per_minute(1)).is_err());
        assert!(limiter.take(&2).is_ok());
    }

    #[test]
    fn keys_beyond_the_maximum_are_not_refused() {
        let limiter = KeyedLimiter::with_max_keys(Quota::per_hour(2), 10);
        for key in 0..1000 {
            assert!(limiter.take(&key).is_ok() && limiter.take(&key).is_ok(), "{key}");
            assert!(limiter.buckets.lock().len() <= 10);
            assert!(limiter.take(&key).is_err(), "{key} has a quota of its own");
        }
    }

    #[test]
    fn keys_with_the_most_left_are_forgotten_first() {
        let (mut buckets, quota, now) = (Buckets::new(16, |_| ()), Quota::per_hour(10), Instant::now());
        for key in 0..16 {
            for _ in 0..if key < 14 { 5 } else { 2 } {
                buckets.take(&key, quota, now).unwrap();
            }
        }
        buckets.take(&16, quota, now).unwrap();
        assert_eq!(buckets.len(), 15, "an eighth was forgotten, and one is new");
        for key in 0..14 {
            assert_eq!(buckets.take(&key, quota, now), Ok(4), "{key}");
        }
        assert_eq!(buckets.take(&14, quota, now), Ok(9), "it was forgotten");
    }

    #[test]
    fn full_buckets_are_forgotten_once_a_minute() {
        let (mut buckets, quota, start) = (Buckets::new(1000, |_| ()), Quota::per_minute(60), Instant::now());
        for key in 0..100 {
            buckets.take(&key, quota, start).unwrap();
        }
        buckets.take(&200, quota, start + Duration::from_secs(59)).unwrap();
        assert_eq!(buckets.len(), 101);
        buckets.take(&201, quota, start + Duration::from_secs(60)).unwrap();
        assert_eq!(buckets.len(), 1);
    }
}
