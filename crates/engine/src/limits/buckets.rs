//! Rate limits of teams that have their own: governor's GCRA with a quota for each key.

use std::collections::HashMap;
use std::hash::Hash;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use parking_lot::Mutex;

type Limiter = RateLimiter<NotKeyed, InMemoryState, DefaultClock, StateInformationMiddleware>;

/// One bucket for each key with an own quota. Their number is bounded by that of the overrides.
pub(crate) struct OwnBuckets<K> {
    /// Time in which a whole quota is refilled.
    period: Duration,
    buckets: Mutex<HashMap<K, Bucket>>,
}

struct Bucket {
    quota: NonZeroU32,
    limiter: Arc<Limiter>,
}

impl<K: Eq + Hash> OwnBuckets<K> {
    pub(crate) fn new(period: Duration) -> Self {
        Self { period, buckets: Mutex::default() }
    }

    /// Takes one from the key's bucket, and returns how many are left. The bucket is replaced by a full one when its
    /// quota has changed.
    ///
    /// # Errors
    /// The time until one more can be taken. Nothing is taken then.
    pub(crate) fn take(&self, key: K, quota: NonZeroU32) -> Result<u32, Duration> {
        self.take_several(key, quota, NonZeroU32::MIN)
    }

    /// Takes as many at once, at most the whole quota.
    ///
    /// # Errors
    /// The time until as many can be taken. Nothing is taken then.
    pub(crate) fn take_several(&self, key: K, quota: NonZeroU32, count: NonZeroU32) -> Result<u32, Duration> {
        let limiter = {
            let mut buckets = self.buckets.lock();
            let bucket = buckets.entry(key).or_insert_with(|| self.full(quota));
            if bucket.quota != quota {
                *bucket = self.full(quota);
            }
            Arc::clone(&bucket.limiter)
        };
        match limiter.check_n(count.min(quota)) {
            Ok(Ok(snapshot)) => Ok(snapshot.remaining_burst_capacity()),
            Ok(Err(until)) => Err(until.wait_time_from(limiter.clock().now())),
            // More than the whole quota, which the minimum rules out.
            Err(_) => Err(self.period),
        }
    }

    /// Forgets the buckets of other keys.
    pub(crate) fn retain(&self, is_kept: impl Fn(&K) -> bool) {
        self.buckets.lock().retain(|key, _| is_kept(key));
    }

    fn full(&self, quota: NonZeroU32) -> Bucket {
        let interval = self.period / quota.get();
        let limit = Quota::with_period(interval).unwrap_or_else(|| Quota::per_second(quota)).allow_burst(quota);
        Bucket { quota, limiter: Arc::new(RateLimiter::direct(limit).with_middleware()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quota(number: u32) -> NonZeroU32 {
        NonZeroU32::new(number).unwrap()
    }

    #[test]
    fn changed_quota_replaces_the_bucket_of_its_key_only() {
        let buckets = OwnBuckets::new(Duration::from_secs(60 * 60));
        assert_eq!((buckets.take("a", quota(2)), buckets.take("a", quota(2))), (Ok(1), Ok(0)));
        let wait = buckets.take("a", quota(2)).unwrap_err();
        assert!((1790..=1800).contains(&wait.as_secs()), "{wait:?}");
        assert_eq!(buckets.take("b", quota(2)), Ok(1), "another key has its own bucket");
        assert_eq!(buckets.take("a", quota(3)), Ok(2), "a changed quota is in effect at once");
        assert_eq!(buckets.take("b", quota(2)), Ok(0));
        buckets.retain(|key| *key != "b");
        assert_eq!(buckets.take("b", quota(2)), Ok(1));
        assert_eq!(buckets.take("a", quota(3)), Ok(1));
    }

    #[test]
    fn several_are_taken_at_once_or_none() {
        let buckets = OwnBuckets::new(Duration::from_secs(60 * 60));
        assert_eq!(buckets.take_several("a", quota(6), quota(4)), Ok(2));
        let wait = buckets.take_several("a", quota(6), quota(4)).unwrap_err();
        assert!((1190..=1200).contains(&wait.as_secs()), "two more after twenty minutes: {wait:?}");
        assert_eq!(buckets.take("a", quota(6)), Ok(1), "the refused ones were not taken");
        assert_eq!(buckets.take_several("b", quota(6), quota(50)), Ok(0), "at most the whole quota");
    }
}
