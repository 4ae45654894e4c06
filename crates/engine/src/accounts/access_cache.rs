//! Credentials that were accepted a moment ago. Looking one up costs a query, which would be half the cost of reading a
//! grab.
//!
//! An entry is valid for [`ACCEPTED_FOR`], in which another process may have revoked the credential, and only until this
//! process changes anything that access may depend on. Refusals are not stored.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use grabd_domain::Timestamp;
use grabd_domain::credentials::{Caller, Scopes};
use parking_lot::Mutex;

/// How long another process's change may stay unnoticed. It is short, because only credentials with hundreds of requests per
/// second need fewer queries.
pub const ACCEPTED_FOR: Duration = Duration::from_millis(50);
/// Maximum number of entries. Beyond it, the outdated ones are removed, or all of them.
const ENTRIES: usize = 10_000;

/// The entries, by the SHA-256 of their credentials.
#[derive(Debug, Default)]
pub(crate) struct AccessCache(Mutex<HashMap<[u8; 32], Entry>>);

#[derive(Clone, Copy, Debug)]
struct Entry {
    caller: Caller,
    scopes: Scopes,
    /// When the credential expires by itself.
    expires_at: Option<Timestamp>,
    /// The version of everything that access depends on, from before the credential was looked up.
    version: u64,
    until: Instant,
}

impl AccessCache {
    /// The caller that a credential identifies and what it may do, if that is known and not outdated.
    pub(super) fn get(&self, credential: &[u8; 32], version: u64, now: Timestamp) -> Option<(Caller, Scopes)> {
        self.get_at(Instant::now(), credential, version, now)
    }

    /// The same for a look-up at `instant`.
    fn get_at(
        &self,
        instant: Instant,
        credential: &[u8; 32],
        version: u64,
        now: Timestamp,
    ) -> Option<(Caller, Scopes)> {
        let entry = self.0.lock().get(credential).copied()?;
        let is_valid = entry.version == version
            && instant < entry.until
            && entry.expires_at.is_none_or(|expires_at| now < expires_at);
        is_valid.then_some((entry.caller, entry.scopes))
    }

    /// Stores a caller. `version` was read before the credential was looked up.
    pub(super) fn insert(
        &self,
        credential: [u8; 32],
        version: u64,
        (caller, scopes): (Caller, Scopes),
        expires_at: Option<Timestamp>,
    ) {
        let now = Instant::now();
        let mut entries = self.0.lock();
        if entries.len() >= ENTRIES && !entries.contains_key(&credential) {
            entries.retain(|_, entry| entry.version == version && now < entry.until);
            if entries.len() >= ENTRIES {
                entries.clear();
            }
        }
        entries.insert(credential, Entry { caller, scopes, expires_at, version, until: now + ACCEPTED_FOR });
    }
}

#[cfg(test)]
mod tests {
    use grabd_domain::credentials::{Environment, Principal};
    use grabd_domain::ids::{KeyId, TeamId};
    use uuid::Uuid;

    use super::*;

    const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);

    fn caller() -> (Caller, Scopes) {
        let principal = Principal::Key(KeyId(Uuid::nil()));
        (Caller { team: TeamId(Uuid::nil()), environment: Environment::Live, principal }, Scopes::ALL)
    }

    #[test]
    fn entry_is_valid_for_its_version_and_until_the_credential_expires() {
        let cache = AccessCache::default();
        let expires_at = NOW + Duration::from_secs(1);
        let began = Instant::now();
        cache.insert([1; 32], 7, caller(), Some(expires_at));
        let get = |number: u8, version, now| cache.get_at(began, &[number; 32], version, now);
        assert!(get(1, 7, NOW).is_some());
        assert!(get(1, 8, NOW).is_none(), "something changed");
        assert!(get(1, 7, expires_at).is_none(), "it expired");
        assert!(get(2, 7, NOW).is_none(), "another credential");
        let later = Instant::now() + ACCEPTED_FOR;
        assert!(cache.get_at(later, &[1; 32], 7, NOW).is_none(), "it was accepted too long ago");
    }

    #[test]
    fn number_of_entries_is_bounded() {
        let cache = AccessCache::default();
        for number in 0..ENTRIES * 2 + 1 {
            let mut credential = [0; 32];
            credential[..8].copy_from_slice(&number.to_be_bytes());
            cache.insert(credential, 7, caller(), None);
            assert!(cache.0.lock().len() <= ENTRIES);
        }
    }
}
