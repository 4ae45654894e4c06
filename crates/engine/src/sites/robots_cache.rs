//! Remembers the robots.txt of hosts for a while.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::ids::SiteId;
use grabd_domain::site::Robots;
use parking_lot::Mutex;

/// Hosts that are remembered. Each takes at most a few times the size of its robots.txt.
const MAX_HOSTS: usize = 64;
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

/// The rules of hosts, each for the job that has read them.
#[derive(Default)]
pub(super) struct RobotsCache(Mutex<HashMap<(SiteId, String), (HostRules, Timestamp)>>);

impl RobotsCache {
    pub(super) fn find(&self, key: &(SiteId, String), now: Timestamp) -> Option<HostRules> {
        self.0.lock().get(key).filter(|(_, until)| *until > now).map(|(rules, _)| rules.clone())
    }

    pub(super) fn insert(&self, key: (SiteId, String), rules: HostRules, now: Timestamp) {
        let mut cached = self.0.lock();
        if cached.len() >= MAX_HOSTS {
            cached.retain(|_, (_, until)| *until > now);
        }
        if cached.len() >= MAX_HOSTS
            && let Some(first) = cached.iter().min_by_key(|(_, (_, until))| *until).map(|(key, _)| key.clone())
        {
            cached.remove(&first);
        }
        cached.insert(key, (rules, now + LIFE));
    }

    /// Forgets the hosts of a job that has ended.
    pub(super) fn forget(&self, site: SiteId) {
        self.0.lock().retain(|(of, _), _| *of != site);
    }
}
