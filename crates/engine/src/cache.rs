//! An LRU cache limited by the size of its values.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use parking_lot::Mutex;

/// Evicts the least recently used values beyond `max_bytes`. Keys are small and not counted.
pub(crate) struct Cache<K, V> {
    max_bytes: usize,
    entries: Mutex<Entries<K, V>>,
}

struct Entries<K, V> {
    by_key: HashMap<K, (u64, V)>,
    /// Keys by last use, oldest first.
    by_use: BTreeMap<u64, K>,
    /// Incremented on every use.
    clock: u64,
    bytes: usize,
}

impl<K: Clone + Eq + Hash, V: Clone + AsRef<[u8]>> Cache<K, V> {
    pub(crate) fn new(max_bytes: usize) -> Self {
        let entries = Entries { by_key: HashMap::new(), by_use: BTreeMap::new(), clock: 0, bytes: 0 };
        Self { max_bytes, entries: Mutex::new(entries) }
    }

    pub(crate) fn get(&self, key: &K) -> Option<V> {
        let mut entries = self.entries.lock();
        let value = entries.take(key)?;
        entries.put(key.clone(), value.clone());
        Some(value)
    }

    /// Inserts a value, unless it is larger than the whole cache.
    pub(crate) fn put(&self, key: K, value: &V) {
        let mut entries = self.entries.lock();
        entries.take(&key);
        if value.as_ref().len() > self.max_bytes {
            return;
        }
        entries.put(key, value.clone());
        while entries.bytes > self.max_bytes {
            entries.evict_oldest();
        }
    }

    pub(crate) fn remove(&self, key: &K) {
        self.entries.lock().take(key);
    }
}

impl<K: Clone + Eq + Hash, V: AsRef<[u8]>> Entries<K, V> {
    fn take(&mut self, key: &K) -> Option<V> {
        let (used, value) = self.by_key.remove(key)?;
        self.by_use.remove(&used);
        self.bytes -= value.as_ref().len();
        Some(value)
    }

    fn put(&mut self, key: K, value: V) {
        self.clock += 1;
        self.bytes += value.as_ref().len();
        self.by_use.insert(self.clock, key.clone());
        self.by_key.insert(key, (self.clock, value));
    }

    fn evict_oldest(&mut self) {
        if let Some((_, key)) = self.by_use.pop_first()
            && let Some((_, value)) = self.by_key.remove(&key)
        {
            self.bytes -= value.as_ref().len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(cache: &Cache<char, Vec<u8>>) -> String {
        cache.entries.lock().by_use.values().collect()
    }

    #[test]
    fn insert_evicts_the_least_recently_used_value() {
        let cache = Cache::new(10);
        for name in ['a', 'b', 'c'] {
            cache.put(name, &vec![0; 3]);
        }
        assert_eq!(names(&cache), "abc");
        assert_eq!(cache.get(&'a'), Some(vec![0; 3]));
        cache.put('d', &vec![0; 4]);
        assert_eq!(names(&cache), "cad");
        assert_eq!(cache.get(&'b'), None);
        cache.remove(&'a');
        cache.remove(&'a');
        assert_eq!((names(&cache).as_str(), cache.entries.lock().bytes), ("cd", 7));
    }

    #[test]
    fn size_never_exceeds_the_limit() {
        let cache = Cache::new(10);
        for (name, bytes, expected) in [
            ('a', 10, "a"),
            ('b', 10, "b"),
            ('c', 11, "b"),
            ('b', 11, ""),
            ('d', 0, "d"),
            ('d', 10, "d"),
            ('e', 1, "e"),
        ] {
            cache.put(name, &vec![0; bytes]);
            assert_eq!(names(&cache), expected);
            let entries = cache.entries.lock();
            let total: usize = entries.by_key.values().map(|(_, value)| value.len()).sum();
            assert_eq!(entries.bytes, total);
            assert_eq!(entries.by_key.len(), entries.by_use.len());
        }
    }
}
