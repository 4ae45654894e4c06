//! Requests per minute that the processes of a cluster share. Each leases several requests at a time from the database,
//! and admits them without asking again. So the processes together admit at most the limit plus one lease for each.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use grabd_domain::credentials::Environment;
use grabd_domain::ids::TeamId;
use grabd_store::Store;
use grabd_store::limits::{RateAsk, RateLease};
use parking_lot::{Mutex, MutexGuard};
use tokio::time::timeout;

type Key = (TeamId, Environment);

/// Maximum wait for the database.
const TIMEOUT: Duration = Duration::from_millis(250);
/// How long the database is not asked after it did not respond in time.
const AWAY: Duration = Duration::from_secs(1);
/// A lease that is older is not used any more, so that an idle process holds nothing back.
const LEASE_FOR: Duration = Duration::from_secs(2);
/// A process that used up its lease faster than this leases twice as many the next time; others half as many.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// Shortest time between two questions about a used-up limit.
const RETRY_AFTER: Duration = Duration::from_millis(250);
/// The largest lease is this part of the limit, and at least one request.
const LARGEST: u32 = 10;
/// Maximum number of remembered leases. Those that are not used any more are forgotten first.
const MAX_CELLS: usize = 16_384;

/// The leases of this process.
#[derive(Default)]
pub(crate) struct SharedLimits {
    cells: Mutex<HashMap<Key, Arc<Cell>>>,
    away_until: Mutex<Option<Instant>>,
}

/// One request at a time asks the database for a key; the others wait for its lease.
type Cell = tokio::sync::Mutex<Lease>;

struct Lease {
    per_minute: NonZeroU32,
    left: u32,
    /// Number of requests of the last lease.
    size: u32,
    leased_at: Instant,
    /// Others that could be leased then.
    remaining: u32,
    /// Until when the limit is used up.
    used_up_until: Option<Instant>,
}

/// The limit is not known, since the database does not respond in time, or too many keys are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unknown;

impl Lease {
    fn none(per_minute: NonZeroU32, now: Instant) -> Self {
        Self { per_minute, left: 0, size: 0, leased_at: now, remaining: 0, used_up_until: None }
    }

    /// The number of requests to ask for.
    fn next_size(&self, now: Instant) -> NonZeroU32 {
        let largest = (self.per_minute.get() / LARGEST).max(1);
        let size = match self.size {
            0 => self.per_minute.get() / 60,
            size if now.saturating_duration_since(self.leased_at) < ASK_EVERY => size.saturating_mul(2),
            size => size / 2,
        };
        NonZeroU32::new(size.min(largest)).unwrap_or(NonZeroU32::MIN)
    }

    /// Takes one of the leased requests, or the time until the limit may have room. `None`: the database must be asked.
    fn take(&mut self, now: Instant) -> Option<Result<u32, Duration>> {
        if let Some(left) = self.take_leased(now, NonZeroU32::MIN) {
            return Some(Ok(left));
        }
        let until = self.used_up_until.filter(|until| *until > now)?;
        Some(Err(until - now))
    }

    /// Takes several leased requests, if there are as many.
    fn take_leased(&mut self, now: Instant, count: NonZeroU32) -> Option<u32> {
        if now.saturating_duration_since(self.leased_at) >= LEASE_FOR {
            self.left = 0;
        }
        self.left = self.left.checked_sub(count.get())?;
        Some(self.left.saturating_add(self.remaining))
    }

    fn renew(&mut self, wanted: NonZeroU32, leased: RateLease, now: Instant) {
        let RateLease { granted, remaining, wait } = leased;
        self.left = granted;
        self.size = wanted.get();
        self.leased_at = now;
        self.remaining = remaining;
        self.used_up_until = (granted < wanted.get()).then(|| now + wait.max(RETRY_AFTER));
    }
}

impl SharedLimits {
    /// Takes one request. Returns how many are left, or the time until one more may be admitted. Nothing is taken then.
    ///
    /// # Errors
    /// [`Unknown`] when the caller must count for itself.
    pub(crate) async fn take(
        &self,
        store: &Store,
        (team, environment): Key,
        per_minute: NonZeroU32,
    ) -> Result<Result<u32, Duration>, Unknown> {
        let cell = self.cell((team, environment), per_minute)?;
        let mut lease = cell.lock().await;
        let now = Instant::now();
        if lease.per_minute != per_minute {
            *lease = Lease::none(per_minute, now);
        }
        if let Some(taken) = lease.take(now) {
            return Ok(taken);
        }
        if self.is_away(now) {
            return Err(Unknown);
        }
        let wanted = lease.next_size(now);
        let leased =
            self.lease(store, RateAsk { team, environment, per_minute, wanted, least: NonZeroU32::MIN }).await?;
        let now = Instant::now();
        lease.renew(wanted, leased, now);
        lease.take(now).ok_or(Unknown)
    }

    /// Takes several requests at once, at most the whole limit. Returns how many are left, or the time until as many may be
    /// admitted. Nothing is taken then.
    ///
    /// # Errors
    /// [`Unknown`] when the caller must count for itself.
    pub(crate) async fn take_several(
        &self,
        store: &Store,
        (team, environment): Key,
        per_minute: NonZeroU32,
        count: NonZeroU32,
    ) -> Result<Result<u32, Duration>, Unknown> {
        let count = count.min(per_minute);
        let cell = self.cell((team, environment), per_minute)?;
        let mut lease = cell.lock().await;
        let now = Instant::now();
        if lease.per_minute != per_minute {
            *lease = Lease::none(per_minute, now);
        }
        if let Some(left) = lease.take_leased(now, count) {
            return Ok(Ok(left));
        }
        if self.is_away(now) {
            return Err(Unknown);
        }
        // What is leased stays for single requests.
        let leased = self.lease(store, RateAsk { team, environment, per_minute, wanted: count, least: count }).await?;
        Ok(match leased.granted >= count.get() {
            true => Ok(lease.left.saturating_add(leased.remaining)),
            false => Err(leased.wait.max(RETRY_AFTER)),
        })
    }

    async fn lease(&self, store: &Store, ask: RateAsk) -> Result<RateLease, Unknown> {
        match timeout(TIMEOUT, store.limits().lease_requests(ask)).await {
            Ok(Ok(leased)) => return Ok(leased),
            Ok(Err(error)) => {
                tracing::warn!(%error, "requests are counted in this process only, since the database failed");
            }
            Err(_) => tracing::warn!("requests are counted in this process only, since the database takes too long"),
        }
        self.set_away();
        Err(Unknown)
    }

    fn cell(&self, key: Key, per_minute: NonZeroU32) -> Result<Arc<Cell>, Unknown> {
        let mut cells = lock(&self.cells);
        if let Some(cell) = cells.get(&key) {
            return Ok(Arc::clone(cell));
        }
        let now = Instant::now();
        if cells.len() >= MAX_CELLS {
            forget_unused(&mut cells, now);
        }
        if cells.len() >= MAX_CELLS {
            return Err(Unknown);
        }
        let cell = Arc::new(Cell::new(Lease::none(per_minute, now)));
        cells.insert(key, Arc::clone(&cell));
        Ok(cell)
    }

    /// Forgets leases that are not used any more.
    pub(crate) fn forget_unused(&self) {
        let mut cells = lock(&self.cells);
        forget_unused(&mut cells, Instant::now());
        cells.shrink_to_fit();
    }

    fn is_away(&self, now: Instant) -> bool {
        lock(&self.away_until).is_some_and(|until| until > now)
    }

    fn set_away(&self) {
        *lock(&self.away_until) = Some(Instant::now() + AWAY);
    }
}

fn forget_unused(cells: &mut HashMap<Key, Arc<Cell>>, now: Instant) {
    // One that cannot be locked is in use.
    cells.retain(|_, cell| match cell.try_lock() {
        Ok(lease) => {
            now.saturating_duration_since(lease.leased_at) < LEASE_FOR
                || lease.used_up_until.is_some_and(|until| until > now)
        }
        Err(_) => true,
    });
}

/// The locks are only held for a few map operations, hence no asynchronous ones.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

#[cfg(test)]
mod tests;
