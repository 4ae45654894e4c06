//! Rate limits by client address: pages, tokens, client registrations, sign-ins, sign-ups. Purchases and changes are
//! limited by user.

use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};

use grabd_domain::ids::UserId;
use grabd_http::{KeyedLimiter, Window};

/// Passwords that an address may try per minute; each costs a slow hash. The engine limits the attempts per account.
const SIGN_INS_PER_MINUTE: u32 = 20;
/// Passwords that an address may set with a link per minute; each costs a slow hash. Separate from sign-ins, so that
/// failed ones do not keep out a person with a link.
const LINKS_PER_MINUTE: u32 = 20;
/// Sign-ups that an address may attempt per hour.
const SIGN_UPS_PER_HOUR: u32 = 10;
/// Placeholders that an address may request per minute without signing in. Each costs some milliseconds of CPU time.
const TRIALS_PER_MINUTE: u32 = 10;
/// Samples that an address may ask for per minute without signing in. Each may take a slot for some seconds.
const SAMPLES_PER_MINUTE: u32 = 20;
/// Purchases that a user may start per hour. Each is a request to Stripe, and few users need a second.
const PURCHASES_PER_HOUR: u32 = 10;
/// Changes of accounts, teams and keys that a user may make per day. Each leaves rows behind that are kept for long: in
/// the audit trail, of revoked keys, of deleted teams.
const CHANGES_PER_DAY: u32 = 500;
/// Requests that one page makes by itself: a thumbnail of each grab, and the event stream.
const PARTS_PER_PAGE: u32 = 32;

/// Password resets that an address may request per hour; each may send a mail.
const FORGOTTEN_PER_HOUR: u32 = 10;

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
    pub(crate) samples: Limit,
    /// Thumbnails and event streams.
    pub(crate) parts: Limit,
    pub(crate) forgotten: Limit,
    pub(crate) purchases: Limit<UserId>,
    /// Forms about accounts, teams, keys and apps.
    pub(crate) changes: Limit<UserId>,
}

/// The quota is used up. Contains the seconds until the next request is allowed, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RateLimited {
    pub(crate) retry_after_s: u64,
}

/// A quota for each key, by default each client address.
pub(crate) struct Limit<K: Clone + Eq + Hash = IpAddr>(KeyedLimiter<K>);

impl Limits {
    pub(crate) fn new(requests_per_minute: u32, registrations_per_hour: u32) -> Self {
        Self {
            pages: Limit(KeyedLimiter::per_minute(requests_per_minute)),
            tokens: Limit(KeyedLimiter::per_minute(requests_per_minute)),
            registrations: Limit(KeyedLimiter::per_hour(registrations_per_hour)),
            sign_ins: Limit(KeyedLimiter::per_minute(SIGN_INS_PER_MINUTE)),
            device_sign_ins: Limit(KeyedLimiter::per_minute(SIGN_INS_PER_MINUTE)),
            links: Limit(KeyedLimiter::per_minute(LINKS_PER_MINUTE)),
            sign_ups: Limit(KeyedLimiter::per_hour(SIGN_UPS_PER_HOUR)),
            trials: Limit(KeyedLimiter::per_minute(TRIALS_PER_MINUTE)),
            samples: Limit(KeyedLimiter::per_minute(SAMPLES_PER_MINUTE)),
            parts: Limit(KeyedLimiter::per_minute(requests_per_minute.saturating_mul(PARTS_PER_PAGE))),
            forgotten: Limit(KeyedLimiter::per_hour(FORGOTTEN_PER_HOUR)),
            purchases: Limit(KeyedLimiter::per_hour(PURCHASES_PER_HOUR)),
            changes: Limit(KeyedLimiter::per_day(CHANGES_PER_DAY)),
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
    /// Takes one request from the quota of a key.
    ///
    /// # Errors
    /// When the quota is used up; nothing is taken then.
    pub(crate) fn take(&self, key: K) -> Result<(), RateLimited> {
        let admitted = self.0.take(key);
        admitted.map(|_| ()).map_err(|Window { reset_s, .. }| RateLimited { retry_after_s: reset_s })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
