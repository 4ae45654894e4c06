//! Rate limits by client address: pages, tokens, client registrations, sign-ins, sign-ups. Purchases are limited by
//! user.

use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use governor::clock::Clock;
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use grabd_domain::ids::UserId;

/// Passwords that an address may try per minute; each costs a slow hash. The engine limits the attempts per account.
const SIGN_INS_PER_MINUTE: u32 = 20;
/// Passwords that an address may set with a link per minute; each costs a slow hash. Separate from sign-ins, so that
/// failed ones do not keep out a person with a link.
const LINKS_PER_MINUTE: u32 = 20;
/// Sign-ups that an address may attempt per hour.
const SIGN_UPS_PER_HOUR: u32 = 10;
/// Placeholders that an address may request per minute without signing in. Each costs some milliseconds of CPU time.
const TRIALS_PER_MINUTE: u32 = 10;
/// Purchases that a user may start per hour. Each is a request to Stripe, and few users need a second.
const PURCHASES_PER_HOUR: u32 = 10;
/// Requests that one page makes by itself: a thumbnail of each grab, and the event stream.
const PARTS_PER_PAGE: u32 = 32;

/// Password resets that an address may request per hour; each may send a mail.
const FORGOTTEN_PER_HOUR: u32 = 10;

/// Keys that one limit stores. Beyond that, new keys share one limit until old keys are removed.
const MAX_KEYS: usize = 50_000;
/// How often keys with a full quota are removed.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// All limits.
pub(crate) struct Limits {
    /// Pages, authorization requests and decisions about them.
    pub(crate) pages: Limit,
    /// Token requests and revocations.
    pub(crate) tokens: Limit,
    /// Client registrations, by [`site`].
    pub(crate) registrations: Limit,
    pub(crate) sign_ins: Limit,
    /// Sign-ins of a known device whose network has used up its limit, by the hash of the device.
    pub(crate) device_sign_ins: Limit<[u8; 32]>,
    /// Uses of links from e-mails.
    pub(crate) links: Limit,
    pub(crate) sign_ups: Limit,
    pub(crate) trials: Limit,
    /// Thumbnails and event streams.
    pub(crate) parts: Limit,
    pub(crate) forgotten: Limit,
    pub(crate) purchases: Limit<UserId>,
}

/// The quota is used up. Contains the seconds until the next request is allowed, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RateLimited {
    pub(crate) retry_after_s: u64,
}

/// A quota for each key, by default each client address.
pub(crate) struct Limit<K: Clone + Eq + Hash = IpAddr> {
    /// `None` is the shared key of requests beyond `max_keys`.
    limiter: DefaultKeyedRateLimiter<Option<K>>,
    max_keys: usize,
    swept_at: Mutex<Instant>,
}

impl Limits {
    pub(crate) fn new(requests_per_minute: u32, registrations_per_hour: u32) -> Self {
        let per_minute = |count| Quota::per_minute(at_least_one(count));
        let per_hour = |count| Quota::per_hour(at_least_one(count));
        Self {
            pages: Limit::new(per_minute(requests_per_minute)),
            tokens: Limit::new(per_minute(requests_per_minute)),
            registrations: Limit::new(per_hour(registrations_per_hour)),
            sign_ins: Limit::new(per_minute(SIGN_INS_PER_MINUTE)),
            device_sign_ins: Limit::new(per_minute(SIGN_INS_PER_MINUTE)),
            links: Limit::new(per_minute(LINKS_PER_MINUTE)),
            sign_ups: Limit::new(per_hour(SIGN_UPS_PER_HOUR)),
            trials: Limit::new(per_minute(TRIALS_PER_MINUTE)),
            parts: Limit::new(per_minute(requests_per_minute.saturating_mul(PARTS_PER_PAGE))),
            forgotten: Limit::new(per_hour(FORGOTTEN_PER_HOUR)),
            purchases: Limit::new(per_hour(PURCHASES_PER_HOUR)),
        }
    }
}

/// The key of the limit for client registrations: an IPv4 address, or a /48 in IPv6, which is what one customer gets.
/// A registration is stored, so the limit is coarser than that of requests.
pub(crate) fn site(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !(u128::MAX >> 48)).into(),
    }
}

impl<K: Clone + Eq + Hash> Limit<K> {
    fn new(quota: Quota) -> Self {
        Self { limiter: RateLimiter::keyed(quota), max_keys: MAX_KEYS, swept_at: Mutex::new(Instant::now()) }
    }

    /// Takes one request from the quota of a key.
    ///
    /// # Errors
    /// When the quota is used up; nothing is taken then.
    pub(crate) fn take(&self, key: K) -> Result<(), RateLimited> {
        self.sweep(Instant::now());
        let key = (self.limiter.len() < self.max_keys).then_some(key);
        self.limiter.check_key(&key).map_err(|until| {
            let wait = until.wait_time_from(self.limiter.clock().now());
            RateLimited { retry_after_s: wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0)).max(1) }
        })
    }

    /// Removes keys with a full quota, once a minute. Returns at once if another request is sweeping.
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
    fn requests_above_the_quota_are_rejected_per_address() {
        let limit = Limit::new(Quota::per_hour(at_least_one(20)));
        for _ in 0..20 {
            assert_eq!(limit.take(address(1)), Ok(()));
        }
        let Err(RateLimited { retry_after_s }) = limit.take(address(1)) else {
            panic!("the 21st request was admitted")
        };
        assert!((179..=180).contains(&retry_after_s), "{retry_after_s}");
        assert_eq!(limit.take(address(2)), Ok(()));
    }

    #[test]
    fn site_is_an_ipv4_address_or_a_48_of_ipv6() {
        for (address, expected) in [
            ("192.0.2.7", "192.0.2.7"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1::"),
            ("2001:db8:2:2:3:4:5:6", "2001:db8:2::"),
            ("::", "::"),
        ] {
            assert_eq!(site(address.parse().unwrap()), expected.parse::<IpAddr>().unwrap());
        }
    }

    #[test]
    fn number_of_keys_is_bounded() {
        let limit = Limit { max_keys: 10, ..Limit::new(Quota::per_hour(at_least_one(2))) };
        let admitted = (0..=255).filter(|last| limit.take(address(*last)).is_ok()).count();
        // Ten addresses with their own key, and two requests of the shared key, which is the eleventh.
        assert_eq!((admitted, limit.limiter.len()), (12, 11));
    }

    #[test]
    fn sweep_removes_addresses_with_a_full_quota() {
        let limit = Limit::new(Quota::per_second(at_least_one(1_000_000)));
        (0..100).for_each(|last| limit.take(address(last)).unwrap());
        let start = *limit.swept_at.lock().unwrap();
        limit.sweep(start + SWEEP_EVERY - Duration::from_millis(1));
        assert_eq!(limit.limiter.len(), 100);
        // Quotas are full again after a microsecond, which may not have passed before the first sweep.
        let is_emptied = (1..1000).any(|minute| {
            limit.sweep(start + SWEEP_EVERY * minute);
            limit.limiter.is_empty()
        });
        assert!(is_emptied);
    }
}
