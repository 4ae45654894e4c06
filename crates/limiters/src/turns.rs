//! Work at the same time: a maximum for all, of which each key has a part.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The work that may be done at the same time: by all, and for one key. Who waits gets a turn in the order of the
/// requests, but those of one key wait for each other first.
pub struct Turns<K> {
    all: Arc<Semaphore>,
    per_key: usize,
    /// Of each key that has a turn or waits for one.
    keys: Mutex<HashMap<K, Weak<Semaphore>>>,
}

/// The right to do the work. Dropping it ends the turn.
#[derive(Debug)]
pub struct Turn {
    _key: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
}

/// There is no turn now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Busy {
    /// The key has as many turns as it may have.
    Key,
    /// All keys together have.
    All,
}

impl<K: Clone + Eq + Hash> Turns<K> {
    /// `all` turns at the same time, of which one key has at most `per_key`. At least one of both.
    pub fn new(all: usize, per_key: usize) -> Self {
        let keys = Mutex::default();
        Self { all: Arc::new(Semaphore::new(all.max(1))), per_key: per_key.max(1), keys }
    }

    /// Waits for a turn of the key. Limit the time.
    pub async fn take(&self, key: &K) -> Turn {
        self.take_of(key, self.per_key).await
    }

    /// The same for a key that has another number of turns, as of when the first of them was taken.
    pub async fn take_of(&self, key: &K, per_key: usize) -> Turn {
        let of_key = acquire(self.of_key(key, per_key)).await;
        Turn { _key: of_key, _all: acquire(Arc::clone(&self.all)).await }
    }

    /// A turn of the key, if it is free now.
    ///
    /// # Errors
    /// Whose turns are used up.
    pub fn try_take(&self, key: &K) -> Result<Turn, Busy> {
        self.try_take_of(key, self.per_key)
    }

    /// The same for a key that has another number of turns, as of when the first of them was taken.
    ///
    /// # Errors
    /// Whose turns are used up.
    pub fn try_take_of(&self, key: &K, per_key: usize) -> Result<Turn, Busy> {
        let of_key = self.of_key(key, per_key).try_acquire_owned().map_err(|_| Busy::Key)?;
        let all = Arc::clone(&self.all).try_acquire_owned().map_err(|_| Busy::All)?;
        Ok(Turn { _key: of_key, _all: all })
    }

    fn of_key(&self, key: &K, per_key: usize) -> Arc<Semaphore> {
        let mut keys = self.keys.lock();
        if let Some(known) = keys.get(key).and_then(Weak::upgrade) {
            return known;
        }
        // The number of keys is that of the requests that have or wait for a turn, which other limits bound.
        keys.retain(|_, turns| turns.strong_count() > 0);
        let turns = Arc::new(Semaphore::new(per_key.max(1)));
        keys.insert(key.clone(), Arc::downgrade(&turns));
        turns
    }
}

async fn acquire(turns: Arc<Semaphore>) -> OwnedSemaphorePermit {
    turns.acquire_owned().await.expect("the semaphore is never closed")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn key_has_its_part_of_all_turns() {
        let turns = Turns::new(3, 2);
        let mut held = vec![turns.try_take(&1).unwrap(), turns.try_take(&1).unwrap()];
        assert_eq!(turns.try_take(&1).unwrap_err(), Busy::Key);
        held.push(turns.try_take(&2).unwrap());
        assert_eq!(turns.try_take(&3).unwrap_err(), Busy::All);
        assert!(timeout(Duration::from_secs(60), turns.take(&3)).await.is_err());
        held.remove(0);
        assert!(turns.try_take(&1).is_ok());
        assert!(timeout(Duration::from_secs(60), turns.take(&3)).await.is_ok());
        drop(held);
        drop(turns.take(&9).await);
        assert_eq!(turns.keys.lock().len(), 1, "keys without turns are forgotten");
    }

    #[test]
    fn key_may_have_another_number_of_turns() {
        let turns = Turns::new(3, 1);
        let held = [turns.try_take_of(&1, 2), turns.try_take_of(&1, 2)];
        assert!(held.iter().all(Result::is_ok));
        assert_eq!(turns.try_take_of(&1, 2).unwrap_err(), Busy::Key);
        assert!(turns.try_take(&2).is_ok());
    }

    /// A key that waits for its own turns does not wait in front of others.
    #[tokio::test(start_paused = true)]
    async fn key_with_many_requests_delays_others_by_its_part_only() {
        let turns = Arc::new(Turns::new(2, 1));
        let first = turns.try_take(&1).unwrap();
        let mut waiting: Vec<_> = (0..100).map(|_| Box::pin(turns.take(&1))).collect();
        for turn in &mut waiting {
            assert!(timeout(Duration::ZERO, turn).await.is_err());
        }
        assert!(turns.try_take(&2).is_ok());
        drop(first);
        assert!(timeout(Duration::ZERO, &mut waiting[0]).await.is_ok());
    }
}
