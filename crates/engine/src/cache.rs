//! The latest files, up to a number of bytes.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Forgets what was used least recently when it holds more than its bytes. Keys are not counted: they are small.
pub(crate) struct Cache<K, V> {
    most_bytes: usize,
    shelf: Mutex<Shelf<K, V>>,
}

struct Shelf<K, V> {
    kept: HashMap<K, (u64, V)>,
    /// Keys by their last use, the oldest first.
    by_use: BTreeMap<u64, K>,
    /// Grows with every use.
    clock: u64,
    bytes: usize,
}

impl<K: Clone + Eq + Hash, V: Clone + AsRef<[u8]>> Cache<K, V> {
    pub(crate) fn new(most_bytes: usize) -> Self {
        let shelf = Shelf { kept: HashMap::new(), by_use: BTreeMap::new(), clock: 0, bytes: 0 };
        Self { most_bytes, shelf: Mutex::new(shelf) }
    }

    pub(crate) fn get(&self, key: &K) -> Option<V> {
        let mut shelf = self.shelf();
        let value = shelf.take(key)?;
        shelf.put(key.clone(), value.clone());
        Some(value)
    }

    /// A value larger than the whole cache is not kept.
    pub(crate) fn put(&self, key: K, value: &V) {
        let mut shelf = self.shelf();
        shelf.take(&key);
        if value.as_ref().len() > self.most_bytes {
            return;
        }
        shelf.put(key, value.clone());
        while shelf.bytes > self.most_bytes {
            shelf.drop_oldest();
        }
    }

    /// Forgets it at once.
    pub(crate) fn remove(&self, key: &K) {
        self.shelf().take(key);
    }

    /// A panic elsewhere cannot leave the shelf half changed in a way that matters: at worst a file is made again.
    fn shelf(&self) -> MutexGuard<'_, Shelf<K, V>> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Clone + Eq + Hash, V: AsRef<[u8]>> Shelf<K, V> {
    fn take(&mut self, key: &K) -> Option<V> {
        let (used, value) = self.kept.remove(key)?;
        self.by_use.remove(&used);
        self.bytes -= value.as_ref().len();
        Some(value)
    }

    fn put(&mut self, key: K, value: V) {
        self.clock += 1;
        self.bytes += value.as_ref().len();
        self.by_use.insert(self.clock, key.clone());
        self.kept.insert(key, (self.clock, value));
    }

    fn drop_oldest(&mut self) {
        if let Some((_, key)) = self.by_use.pop_first()
            && let Some((_, value)) = self.kept.remove(&key)
        {
            self.bytes -= value.as_ref().len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(cache: &Cache<char, Vec<u8>>) -> String {
        cache.shelf().by_use.values().collect()
    }

    #[test]
    fn the_least_recently_used_goes_first() {
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
        assert_eq!((names(&cache).as_str(), cache.shelf().bytes), ("cd", 7));
    }

    #[test]
    fn it_never_holds_more_than_its_bytes() {
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
            let shelf = cache.shelf();
            let held: usize = shelf.kept.values().map(|(_, value)| value.len()).sum();
            assert_eq!(shelf.bytes, held);
            assert_eq!(shelf.kept.len(), shelf.by_use.len());
        }
    }
}
