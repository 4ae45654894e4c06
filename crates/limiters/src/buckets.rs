//! Buckets of requests by key: the generic cell rate algorithm, with a bounded number of keys.
//!
//! A bucket is one time: when it will be full again. So what is forgotten first can be chosen, which the stores of rate
//! limiting libraries do not offer.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::time::{Duration, Instant};

use crate::quota::Quota;

/// How often full buckets are removed.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);
/// When the number of keys is reached, an eighth is forgotten at once, so that choosing them costs little for each.
const FORGOTTEN_SHARE: usize = 8;

/// The buckets of keys. Full ones are not stored.
pub(crate) struct Buckets<K, G> {
    /// Keys of the same group make room for those of others.
    group: fn(&K) -> G,
    max_keys: usize,
    full_at: HashMap<K, Instant>,
    swept_at: Option<Instant>,
}

impl<K: Clone + Eq + Hash + Ord, G: Ord> Buckets<K, G> {
    /// At least one key.
    pub(crate) fn new(max_keys: usize, group: fn(&K) -> G) -> Self {
        Self { group, max_keys: max_keys.max(1), full_at: HashMap::new(), swept_at: None }
    }

    /// Takes one request from the bucket of a key, and returns how many are left.
    ///
    /// # Errors
    /// The time until one more can be taken. Nothing is taken then.
    pub(crate) fn take(&mut self, key: &K, quota: Quota, now: Instant) -> Result<u32, Duration> {
        self.sweep(now);
        let known = self.full_at.get(key).copied();
        let full_at = known.map_or(now, |at| at.max(now)) + quota.interval();
        let empty_at = now + quota.period();
        if full_at > empty_at {
            return Err(full_at - empty_at);
        }
        if known.is_none() && self.full_at.len() >= self.max_keys {
            self.forget(now);
        }
        self.full_at.insert(key.clone(), full_at);
        let remaining = (empty_at - full_at).as_nanos() / quota.interval().as_nanos();
        Ok(u32::try_from(remaining).unwrap_or(u32::MAX))
    }

    /// Returns a request that was taken.
    pub(crate) fn give_back(&mut self, key: &K, quota: Quota) {
        if let Some(full_at) = self.full_at.get_mut(key)
            && let Some(earlier) = full_at.checked_sub(quota.interval())
        {
            *full_at = earlier;
        }
    }

    /// Forgets full buckets, once a minute.
    fn sweep(&mut self, now: Instant) {
        let swept_at = *self.swept_at.get_or_insert(now);
        if now.saturating_duration_since(swept_at) >= SWEEP_INTERVAL {
            self.swept_at = Some(now);
            self.forget_full(now);
            self.full_at.shrink_to_fit();
        }
    }

    fn forget_full(&mut self, now: Instant) {
        self.full_at.retain(|_, full_at| *full_at > now);
    }

    /// Forgets an eighth of the keys: first full ones, then of the groups with the most keys those that have the most
    /// left. So a group cannot make others be forgotten while it has more keys itself.
    fn forget(&mut self, now: Instant) {
        self.forget_full(now);
        let kept = self.max_keys - self.max_keys.div_ceil(FORGOTTEN_SHARE);
        let excess = self.full_at.len().saturating_sub(kept);
        if excess == 0 {
            return;
        }
        let group = self.group;
        let mut keys: Vec<_> = self.full_at.iter().map(|(key, full_at)| (group(key), Reverse(*full_at), key)).collect();
        keys.sort_unstable();
        // The number of a key in its group, counted from the one that has the least left.
        let mut number = 0;
        let mut ranked = Vec::with_capacity(keys.len());
        for (index, (its_group, full_at, key)) in keys.iter().enumerate() {
            number = match index.checked_sub(1).is_some_and(|before| keys[before].0 == *its_group) {
                true => number + 1,
                false => 0,
            };
            ranked.push((Reverse(number), full_at.0, *key));
        }
        ranked.select_nth_unstable(excess - 1);
        let forgotten: HashSet<K> = ranked[..excess].iter().map(|(_, _, key)| (*key).clone()).collect();
        self.full_at.retain(|key, _| !forgotten.contains(key));
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.full_at.len()
    }
}
