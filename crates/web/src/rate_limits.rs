//! Rate limits by client address: pages, tokens, client registrations, sign-ins, sign-ups. Purchases and changes are
//! limited by user, and so is what a user does whose network has used up its limit.
//!
//! An IPv6 address counts as its /64. The addresses of one /48 share a larger quota, and where a request costs a slow hash or
//! leaves a row, so do those of one /24 in IPv4.

use std::hash::Hash;
use std::net::IpAddr;

use grabd_domain::ids::UserId;
use grabd_limiters::{AddressLimiter, EndSiteQuota, KeyedLimiter, Turn, Turns, Window, end_site};

/// Passwords that an address may try per minute; each costs a slow hash. The engine limits the attempts per account.
const SIGN_INS_PER_MINUTE: u32 = 20;
/// Passwords that an address may set with a link per minute; each costs a slow hash. Separate from sign-ins, so that
/// failed ones do not keep out a user with a link.
const LINKS_PER_MINUTE: u32 = 20;
/// Addresses whose quotas of slow hashes an end site may use: so it takes dozens of them to keep the processors busy.
const HASHING_END_SITE: EndSiteQuota = EndSiteQuota::ipv6_and_ipv4(5);
/// Sign-ups that an address may attempt per hour.
const SIGN_UPS_PER_HOUR: u32 = 10;
/// Addresses whose quotas of registrations of apps an end site may use: few users there connect an app within an hour.
const REGISTERING_END_SITE: EndSiteQuota = EndSiteQuota::ipv6_and_ipv4(2);
/// Sign-ins of programs without a browser that an address may begin per hour. Each leaves a row behind for ten minutes.
const DEVICE_REQUESTS_PER_HOUR: u32 = 60;
/// User codes that a user may try per hour. A code is one of 25 billion, and at most 1,000 are open.
const USER_CODES_PER_HOUR: u32 = 60;
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

/// Authorization requests that are checked at the same time. Each may wait some seconds for a document of the app.
const MAX_AUTHORIZATIONS: usize = 64;
/// Those of one end site.
const AUTHORIZATIONS_OF_END_SITE: usize = 4;
/// When another one may be possible: longer than a document may take.
const AUTHORIZATION_RETRY_S: u64 = 5;

/// Password resets that an address may request per hour; each may send a mail.
const FORGOTTEN_PER_HOUR: u32 = 10;

/// All limits.
pub(crate) struct Limits {
    /// Pages, authorization requests and decisions about them.
    pub(crate) pages: AddressLimit,
    /// Token requests and revocations.
    pub(crate) tokens: AddressLimit,
    /// Client registrations.
    pub(crate) registrations: AddressLimit,
    /// Requests of programs without a browser to sign in.
    pub(crate) device_requests: AddressLimit,
    pub(crate) sign_ins: AddressLimit,
    /// Sign-ins of a known device whose network has used up its limit, by the hash of the device.
    pub(crate) device_sign_ins: Limit<[u8; 32]>,
    /// Pages and forms of a signed-in user whose network has used up its limit.
    pub(crate) user_requests: Limit<UserId>,
    /// The same for forms with a password.
    pub(crate) user_passwords: Limit<UserId>,
    /// Uses of links from e-mails.
    pub(crate) links: AddressLimit,
    pub(crate) sign_ups: AddressLimit,
    pub(crate) trials: AddressLimit,
    pub(crate) samples: AddressLimit,
    /// Thumbnails and event streams.
    pub(crate) parts: AddressLimit,
    pub(crate) forgotten: AddressLimit,
    /// Authorization requests that are being checked, by end site.
    authorizations: Turns<IpAddr>,
    /// Codes of programs without a browser.
    pub(crate) user_codes: Limit<UserId>,
    pub(crate) purchases: Limit<UserId>,
    /// Forms about accounts, teams, keys and apps.
    pub(crate) changes: Limit<UserId>,
}

/// The quota is used up. Contains the seconds until the next request is allowed, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RateLimited {
    pub(crate) retry_after_s: u64,
}

/// A quota for each client address and its end site.
pub(crate) struct AddressLimit(AddressLimiter);

/// A quota for each key.
pub(crate) struct Limit<K>(KeyedLimiter<K>);

impl Limits {
    pub(crate) fn new(requests_per_minute: u32, registrations_per_hour: u32) -> Self {
        let per_minute = |limit, site| AddressLimit(AddressLimiter::per_minute(limit, site));
        let per_hour = |limit, site| AddressLimit(AddressLimiter::per_hour(limit, site));
        Self {
            pages: per_minute(requests_per_minute, EndSiteQuota::USUAL),
            tokens: per_minute(requests_per_minute, EndSiteQuota::USUAL),
            registrations: per_hour(registrations_per_hour, REGISTERING_END_SITE),
            device_requests: per_hour(DEVICE_REQUESTS_PER_HOUR, REGISTERING_END_SITE),
            sign_ins: per_minute(SIGN_INS_PER_MINUTE, HASHING_END_SITE),
            device_sign_ins: Limit(KeyedLimiter::per_minute(SIGN_INS_PER_MINUTE)),
            user_requests: Limit(KeyedLimiter::per_minute(requests_per_minute)),
            user_passwords: Limit(KeyedLimiter::per_minute(SIGN_INS_PER_MINUTE)),
            links: per_minute(LINKS_PER_MINUTE, HASHING_END_SITE),
            sign_ups: per_hour(SIGN_UPS_PER_HOUR, HASHING_END_SITE),
            trials: per_minute(TRIALS_PER_MINUTE, EndSiteQuota::USUAL),
            samples: per_minute(SAMPLES_PER_MINUTE, EndSiteQuota::USUAL),
            parts: per_minute(requests_per_minute.saturating_mul(PARTS_PER_PAGE), EndSiteQuota::USUAL),
            forgotten: per_hour(FORGOTTEN_PER_HOUR, HASHING_END_SITE),
            authorizations: Turns::new(MAX_AUTHORIZATIONS, AUTHORIZATIONS_OF_END_SITE),
            user_codes: Limit(KeyedLimiter::per_hour(USER_CODES_PER_HOUR)),
            purchases: Limit(KeyedLimiter::per_hour(PURCHASES_PER_HOUR)),
            changes: Limit(KeyedLimiter::per_day(CHANGES_PER_DAY)),
        }
    }
}

impl Limits {
    /// The turn to check an authorization request from an address.
    ///
    /// # Errors
    /// When as many of its end site, or of all, are being checked.
    pub(crate) fn take_authorization(&self, address: IpAddr) -> Result<Turn, RateLimited> {
        let limited = |_| RateLimited { retry_after_s: AUTHORIZATION_RETRY_S };
        self.authorizations.try_take(&end_site(address)).map_err(limited)
    }
}

impl AddressLimit {
    /// Takes one request from the quotas of an address and its end site.
    ///
    /// # Errors
    /// When one of them is used up; nothing is taken then.
    pub(crate) fn take(&self, address: IpAddr) -> Result<(), RateLimited> {
        self.0.take(address).map(|_| ()).map_err(RateLimited::from)
    }
}

impl<K: Copy + Eq + Hash + Ord> Limit<K> {
    /// Takes one request from the quota of a key.
    ///
    /// # Errors
    /// When the quota is used up; nothing is taken then.
    pub(crate) fn take(&self, key: K) -> Result<(), RateLimited> {
        self.0.take(&key).map(|_| ()).map_err(RateLimited::from)
    }
}

impl From<Window> for RateLimited {
    fn from(Window { reset_s, .. }: Window) -> Self {
        Self { retry_after_s: reset_s }
    }
}
