//! Remembers the robots.txt of hosts for a while.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::ids::SiteId;
use grabd_domain::site::Robots;
use parking_lot::Mutex;

/// Hosts that are remembered.
const MAX_HOSTS: usize = 256;
/// Memory for the rules of all hosts, in bytes.
const MAX_BYTES: usize = 16 << 20;
/// How long the rules of a host are used. RFC 9309 allows a day.
const LIFE: Duration = Duration::from_secs(60 * 60);

/// What a host says about requests to it.
#[derive(Clone, Debug)]
pub(super) enum HostRules {
    /// These rules apply.
    Rules(Arc<Robots>),
    /// They could not be read, so that nothing may be requested.
    Unreachable,
    /// Its address is private.
    Private,
}

impl HostRules {
    fn memory_bytes(&self) -> usize {
        match self {
            Self::Rules(robots) => robots.memory_bytes(),
            Self::Unreachable | Self::Private => 0,
        }
    }
}

/// The rules of hosts, each for the job that has read them.
#[derive(Default)]
pub(super) struct RobotsCache(Mutex<HashMap<(SiteId, String), (HostRules, Timestamp)>>);

impl RobotsCache {
    pub(super) fn find(&self, key: &(SiteId, String), now: Timestamp) -> Option<HostRules> {
        self.0.lock().get(key).filter(|(_, until)| *until > now).map(|(rules, _)| rules.clone())
    }

    pub(super) fn insert(&self, key: (SiteId, String), rules: HostRules, now: Timestamp) {
        let mut cached = self.0.lock();
        cached.retain(|_, (_, until)| *until > now);
        let mut bytes: usize = cached.values().map(|(rules, _)| rules.memory_bytes()).sum();
        bytes += rules.memory_bytes();
        while cached.len() >= MAX_HOSTS || bytes > MAX_BYTES {
            let oldest = cached.iter().min_by_key(|(_, (_, until))| *until).map(|(key, _)| key.clone());
            let Some((removed, _)) = oldest.and_then(|oldest| cached.remove(&oldest)) else { break };
            bytes = bytes.saturating_sub(removed.memory_bytes());
        }
        cached.insert(key, (rules, now + LIFE));
    }

    /// Forgets the hosts of a job that has ended.
    pub(super) fn forget(&self, site: SiteId) {
        self.0.lock().retain(|(of, _), _| *of != site);
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn rules_are_remembered_for_a_while_within_the_memory() {
        let (cache, now) = (RobotsCache::default(), Timestamp::from_ms(0));
        let key = |site: u128, host: &str| (SiteId(Uuid::from_u128(site)), format!("https://{host}.example"));
        let small = HostRules::Rules(Arc::new(Robots::parse(b"User-agent: *\nDisallow: /a\n")));
        cache.insert(key(1, "a"), small.clone(), now);
        assert!(cache.find(&key(1, "a"), now).is_some() && cache.find(&key(2, "a"), now).is_none());
        assert!(cache.find(&key(1, "a"), now + LIFE).is_none());
        let long = format!("User-agent: *\n{}", "Disallow: /\n".repeat(40_000));
        let large = HostRules::Rules(Arc::new(Robots::parse(long.as_bytes())));
        let fits = MAX_BYTES / large.memory_bytes();
        for number in 0..fits + 3 {
            let later = now + Duration::from_secs(1);
            cache.insert(key(1, &number.to_string()), large.clone(), later);
        }
        assert!(cache.find(&key(1, "a"), now).is_none(), "the oldest one is left out first");
        let bytes: usize = cache.0.lock().values().map(|(rules, _)| rules.memory_bytes()).sum();
        assert!(bytes <= MAX_BYTES, "{bytes}");
        cache.forget(SiteId(Uuid::from_u128(1)));
        assert!(cache.0.lock().is_empty());
    }
}
