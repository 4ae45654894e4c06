//! How often an address may ask: for pages, for tokens, for new clients, and to try a password or make an account; and how
//! often a person may begin a purchase.

use std::hash::Hash;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use governor::clock::Clock;
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use grabd_domain::ids::UserId;

/// Clients that an address may register per hour. An app registers once for each of its users.
const REGISTRATIONS_PER_HOUR: u32 = 20;
/// Passwords that an address may try per minute; each costs us a slow hash. How many an account bears is the engine's to
/// say.
const SIGN_INS_PER_MINUTE: u32 = 20;
/// Accounts that an address may try to make per hour.
const SIGN_UPS_PER_HOUR: u32 = 10;
/// Placeholders that an address may have drawn per minute without signing in. Each costs some milliseconds of computing.
const TRIALS_PER_MINUTE: u32 = 10;
/// Purchases that a person may begin per hour. Each is a request to Stripe, and few people need a second.
const PURCHASES_PER_HOUR: u32 = 10;
/// What one page may ask for by itself: a small picture of each grab on it, and news.
const PARTS_PER_PAGE: u32 = 32;

/// New passwords that an address may ask for per hour; each may be a letter to somebody.
const FORGOTTEN_PER_HOUR: u32 = 10;

/// Addresses or people that one limit remembers. Beyond that, newcomers are counted together until others have been
/// forgotten.
const MOST_KEYS: usize = 50_000;
/// How often those who have everything back are forgotten.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// All limits.
pub(crate) struct Limits {
    /// Pages, authorization requests and decisions about them.
    pub(crate) pages: Limit,
    /// Tokens and their revocation.
    pub(crate) tokens: Limit,
    pub(crate) registrations: Limit,
    pub(crate) sign_ins: Limit,
    pub(crate) sign_ups: Limit,
    pub(crate) trials: Limit,
    /// Small pictures, and streams of news.
    pub(crate) parts: Limit,
    pub(crate) forgotten: Limit,
    pub(crate) purchases: Limit<UserId>,
}

/// Nothing is left; seconds until something is. At least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spent {
    pub(crate) retry_after_s: u64,
}

/// The same for each address, or whatever else it is counted by.
pub(crate) struct Limit<K: Clone + Eq + Hash = IpAddr> {
    /// Those who are one too many have no key of their own.
    limiter: DefaultKeyedRateLimiter<Option<K>>,
    most: usize,
    swept_at: Mutex<Instant>,
}

impl Limits {
    pub(crate) fn new(requests_per_minute: u32) -> Self {
        let per_minute = |count| Quota::per_minute(at_least_one(count));
        let per_hour = |count| Quota::per_hour(at_least_one(count));
        Self {
            pages: Limit::new(per_minute(requests_per_minute)),
            tokens: Limit::new(per_minute(requests_per_minute)),
            registrations: Limit::new(per_hour(REGISTRATIONS_PER_HOUR)),
            sign_ins: Limit::new(per_minute(SIGN_INS_PER_MINUTE)),
            sign_ups: Limit::new(per_hour(SIGN_UPS_PER_HOUR)),
            trials: Limit::new(per_minute(TRIALS_PER_MINUTE)),
            parts: Limit::new(per_minute(requests_per_minute.saturating_mul(PARTS_PER_PAGE))),
            forgotten: Limit::new(per_hour(FORGOTTEN_PER_HOUR)),
            purchases: Limit::new(per_hour(PURCHASES_PER_HOUR)),
        }
    }
}

impl<K: Clone + Eq + Hash> Limit<K> {
    fn new(quota: Quota) -> Self {
        Self { limiter: RateLimiter::keyed(quota), most: MOST_KEYS, swept_at: Mutex::new(Instant::now()) }
    }

    /// Takes one from an address or person.
    ///
    /// # Errors
    /// When nothing is left; nothing was taken then.
    pub(crate) fn take(&self, key: K) -> Result<(), Spent> {
        self.sweep(Instant::now());
        let key = (self.limiter.len() < self.most).then_some(key);
        self.limiter.check_key(&key).map_err(|until| {
            let wait = until.wait_time_from(self.limiter.clock().now());
            Spent { retry_after_s: wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0)).max(1) }
        })
    }

    /// Forgets, once a minute, who has everything back. Whoever finds another one sweeping goes on.
    fn sweep(&self, now: Instant) {
        if let Ok(mut swept_at) = self.swept_at.try_lock()
            && now.duration_since(*swept_at) >= SWEEP_EVERY
        {
            *swept_at = now;
            self.limiter.retain_recent();
            self.limiter.shrink_to_fit();
        }
    }
}

fn at_least_one(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    #[test]
    fn an_address_has_its_share_and_no_more() {
        let limit = Limit::new(Quota::per_hour(at_least_one(20)));
        for _ in 0..20 {
            assert_eq!(limit.take(address(1)), Ok(()));
        }
        let Err(Spent { retry_after_s }) = limit.take(address(1)) else { panic!("a 21st was admitted") };
        assert!((179..=180).contains(&retry_after_s), "{retry_after_s}");
        assert_eq!(limit.take(address(2)), Ok(()));
    }

    #[test]
    fn no_crowd_of_addresses_fills_the_memory() {
        let limit = Limit { most: 10, ..Limit::new(Quota::per_hour(at_least_one(2))) };
        let admitted = (0..=255).filter(|last| limit.take(address(*last)).is_ok()).count();
        // Ten of their own, and two for all the others together, who need one more place.
        assert_eq!((admitted, limit.limiter.len()), (12, 11));
    }

    #[test]
    fn addresses_that_have_everything_back_are_forgotten() {
        let limit = Limit::new(Quota::per_second(at_least_one(1_000_000)));
        (0..100).for_each(|last| limit.take(address(last)).unwrap());
        let start = *limit.swept_at.lock().unwrap();
        limit.sweep(start + SWEEP_EVERY - Duration::from_millis(1));
        assert_eq!(limit.limiter.len(), 100);
        // Everybody has everything back after a microsecond, which the first sweep may not have seen pass.
        let is_emptied = (1..1000).any(|minute| {
            limit.sweep(start + SWEEP_EVERY * minute);
            limit.limiter.is_empty()
        });
        assert!(is_emptied);
    }
}
