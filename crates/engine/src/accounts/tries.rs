//! Limits on wrong passwords and codes, so that they cannot be guessed and owners cannot be locked out.
//!
//! A try is counted for its account and source, and for the end site and the whole account unless the account's owner
//! has signed in from that source before. So strangers can use up only their own tries and those of other unknown
//! sources, which slows first sign-ins from new places but stops nobody: a try of the account returns every 36 seconds,
//! and one end site can take less than half of those.
//!
//! A code of the second factor has only six digits, and whoever enters one has the password. So all networks share few
//! tries for an account, and only devices with which its owner has signed in have tries of their own.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::accounts::Email;
use grabd_limiters::end_site;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

/// Wrong passwords from one source in a burst, and the interval after which another try is allowed: about a thousand
/// guesses a day.
const BY_SOURCE: Quota = Quota { tries: 10, interval: Duration::from_secs(90) };
/// The same for all unknown sources of an end site: a /48 in IPv6, which has 65,536 networks, and a /24 in IPv4.
const BY_END_SITE: Quota = Quota { tries: 20, interval: Duration::from_secs(90) };
/// The same for all unknown sources of an account together: 100 at once, then 100 per hour.
const BY_ACCOUNT: Quota = Quota { tries: 100, interval: Duration::from_secs(36) };
/// Wrong codes for an account, and the interval after which another try is allowed: 5 in 15 minutes.
const CODES: Quota = Quota { tries: 5, interval: Duration::from_secs(180) };
/// Wrong codes from networks before the owner gets a notice, and the interval after which one is forgotten. So the fifth
/// in a day is reported, also if they come as slowly as [`CODES`] allows.
const UNREPORTED_CODES: Quota = Quota { tries: 4, interval: Duration::from_secs(6 * 60 * 60) };
/// Notices of wrong codes to an owner.
const REPORTS: Quota = Quota { tries: 1, interval: Duration::from_secs(24 * 60 * 60) };
/// Accounts, and accounts with sources, that are tracked. Evicting one takes wrong passwords for as many others.
const MAX_TRACKED: usize = 20_000;

/// Where a password comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// A network from which nobody has signed in to the account: an IPv4 address, or a /64 in IPv6.
    Network(IpAddr),
    /// A network from which somebody has signed in to the account.
    KnownNetwork(IpAddr),
    /// A device with which somebody has signed in to the account. Its tries are its own, so that others in its network
    /// cannot use them up.
    Device([u8; 32]),
    /// A session of the account.
    Session([u8; 32]),
}

#[derive(Clone, Copy)]
struct Quota {
    tries: u32,
    interval: Duration,
}

/// The tries of all accounts.
pub(super) struct TryLimits(Mutex<Limits>);

struct Limits {
    by_source: Tries,
    by_end_site: Tries,
    by_account: Tries,
    codes: Tries,
    unreported_codes: Tries,
    reports: Tries,
}

impl Default for TryLimits {
    fn default() -> Self {
        Self(Mutex::new(Limits {
            by_source: Tries::new(BY_SOURCE),
            by_end_site: Tries::new(BY_END_SITE),
            by_account: Tries::new(BY_ACCOUNT),
            codes: Tries::new(CODES),
            unreported_codes: Tries::new(UNREPORTED_CODES),
            reports: Tries::new(REPORTS),
        }))
    }
}

impl TryLimits {
    /// Takes one try for an account.
    ///
    /// # Errors
    /// The time until the next try, when none is left. Nothing is taken then.
    pub(super) fn take(&self, email: &Email, source: Source, now: Timestamp) -> Result<(), Duration> {
        let mut limits = self.0.lock();
        let key = source_key(email, source);
        limits.by_source.take(key, now)?;
        let Source::Network(address) = source else { return Ok(()) };
        let its_end_site = end_site_key(email, address);
        if let Err(wait) = limits.by_end_site.take(its_end_site, now) {
            limits.by_source.give_back(key);
            return Err(wait);
        }
        if let Err(wait) = limits.by_account.take(account_key(email), now) {
            limits.by_source.give_back(key);
            limits.by_end_site.give_back(its_end_site);
            return Err(wait);
        }
        Ok(())
    }

    /// Returns a try that did not fail.
    pub(super) fn give_back(&self, email: &Email, source: Source) {
        let mut limits = self.0.lock();
        limits.by_source.give_back(source_key(email, source));
        if let Source::Network(address) = source {
            limits.by_end_site.give_back(end_site_key(email, address));
            limits.by_account.give_back(account_key(email));
        }
    }

    /// Takes one try of a code for an account.
    ///
    /// # Errors
    /// The time until the next try, when none is left. Nothing is taken then.
    pub(super) fn take_code(&self, email: &Email, source: Source, now: Timestamp) -> Result<(), Duration> {
        self.0.lock().codes.take(code_key(email, source), now)
    }

    /// Returns a try of a code that was right.
    pub(super) fn give_back_code(&self, email: &Email, source: Source) {
        self.0.lock().codes.give_back(code_key(email, source));
    }

    /// Counts a wrong code. Returns whether the owner of the account should get a notice now, because somebody else may
    /// have the password.
    pub(super) fn count_wrong_code(&self, email: &Email, source: Source, now: Timestamp) -> bool {
        if let Source::Device(_) | Source::Session(_) = source {
            return false;
        }
        let mut limits = self.0.lock();
        let key = account_key(email);
        limits.unreported_codes.take(key, now).is_err() && limits.reports.take(key, now).is_ok()
    }
}

/// Networks share the tries of the account, also known ones: somebody else may be in them.
fn code_key(email: &Email, source: Source) -> [u8; 32] {
    match source {
        Source::Network(_) | Source::KnownNetwork(_) => account_key(email),
        Source::Device(_) | Source::Session(_) => source_key(email, source),
    }
}

/// A digest, so that addresses of sign-in attempts are not held in memory.
fn account_key(email: &Email) -> [u8; 32] {
    Sha256::digest(email.as_str().as_bytes()).into()
}

fn end_site_key(email: &Email, address: IpAddr) -> [u8; 32] {
    let digest = Sha256::new_with_prefix(account_key(email)).chain_update("end site");
    digest.chain_update(end_site(address).to_string()).finalize().into()
}

fn source_key(email: &Email, source: Source) -> [u8; 32] {
    let digest = Sha256::new_with_prefix(account_key(email));
    let digest = match source {
        // A network keeps its tries when it becomes known.
        Source::Network(address) | Source::KnownNetwork(address) => digest.chain_update(address.to_string()),
        Source::Device(hash) => digest.chain_update("device").chain_update(hash),
        Source::Session(hash) => digest.chain_update("session").chain_update(hash),
    };
    digest.finalize().into()
}

/// For each key, the time at which all its tries are available again. Keys with all tries have no entry.
struct Tries {
    quota: Quota,
    full_at: HashMap<[u8; 32], Timestamp>,
}

impl Tries {
    fn new(quota: Quota) -> Self {
        Self { quota, full_at: HashMap::new() }
    }

    fn take(&mut self, key: [u8; 32], now: Timestamp) -> Result<(), Duration> {
        let Quota { tries, interval } = self.quota;
        let full_at = self.full_at.get(&key).copied().unwrap_or(now).max(now) + interval;
        let limit = now + interval * tries;
        if full_at > limit {
            return Err(full_at.since(limit));
        }
        if self.full_at.len() >= MAX_TRACKED && !self.full_at.contains_key(&key) {
            self.evict(now);
        }
        self.full_at.insert(key, full_at);
        Ok(())
    }

    fn give_back(&mut self, key: [u8; 32]) {
        if let Some(full_at) = self.full_at.get_mut(&key) {
            *full_at = *full_at - self.quota.interval;
        }
    }

    /// Removes entries with all tries available, or else the entry that is closest to it.
    fn evict(&mut self, now: Timestamp) {
        self.full_at.retain(|_, full_at| *full_at > now);
        if self.full_at.len() >= MAX_TRACKED
            && let Some(first) = self.full_at.iter().min_by_key(|(_, full_at)| **full_at).map(|(key, _)| *key)
        {
            self.full_at.remove(&first);
        }
    }
}

#[cfg(test)]
#[path = "tries_tests.rs"]
mod tests;
