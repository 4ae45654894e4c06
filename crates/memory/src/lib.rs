//! A limit for the memory that images take in one process.
//!
//! Whatever reads, decodes or encodes a whole image reserves the memory in the same [`MemoryBudget`] first.
//! Reservations are granted in the order of the requests, so a large one is not overtaken by small ones for ever.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// The unit of reservations in bytes. Smaller units would exceed the counter of the semaphore.
const UNIT: u64 = 1 << 10;

/// Memory for images, shared by a process. Cheap to clone; clones share the budget.
#[derive(Clone, Debug)]
pub struct MemoryBudget {
    free: Arc<Semaphore>,
    units: u32,
}

/// Reserved memory. Dropping it gives the memory back.
#[derive(Debug)]
pub struct Reservation(OwnedSemaphorePermit);

/// Why memory was not reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// More than the whole budget. Waiting does not help.
    #[error("the image needs more memory than all images together may take")]
    TooLarge,
    /// Other images took the memory for the whole wait.
    #[error("other images take the memory")]
    Busy,
}

impl MemoryBudget {
    /// A budget of this many bytes, rounded down to whole KiB: at least one, at most 1 TiB.
    pub fn new(bytes: u64) -> Self {
        let units = u32::try_from(bytes / UNIT).unwrap_or(u32::MAX).clamp(1, 1 << 30);
        let permits = usize::try_from(units).unwrap_or(Semaphore::MAX_PERMITS);
        Self { free: Arc::new(Semaphore::new(permits)), units }
    }

    /// Reserves this many bytes, and waits at most `limit` until they are free.
    ///
    /// # Errors
    /// See [`MemoryError`].
    pub async fn reserve(&self, bytes: u64, limit: Duration) -> Result<Reservation, MemoryError> {
        let units = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX);
        if units > self.units {
            return Err(MemoryError::TooLarge);
        }
        match timeout(limit, Arc::clone(&self.free).acquire_many_owned(units)).await {
            Ok(Ok(permit)) => Ok(Reservation(permit)),
            // The semaphore is never closed.
            Ok(Err(_)) | Err(_) => Err(MemoryError::Busy),
        }
    }

    /// Reserves this many bytes, or the whole budget if that is less: for work that must be possible with any budget.
    ///
    /// # Errors
    /// [`MemoryError::Busy`].
    pub async fn reserve_at_most(&self, bytes: u64, limit: Duration) -> Result<Reservation, MemoryError> {
        self.reserve(bytes.min(self.total_bytes()), limit).await
    }

    /// The size of the budget in bytes.
    pub fn total_bytes(&self) -> u64 {
        u64::from(self.units) * UNIT
    }

    /// The reserved bytes.
    pub fn reserved_bytes(&self) -> u64 {
        let free = u64::try_from(self.free.available_permits()).unwrap_or(u64::MAX);
        self.total_bytes().saturating_sub(free.saturating_mul(UNIT))
    }
}

impl Reservation {
    /// Gives back what exceeds this many bytes.
    pub fn shrink_to(&mut self, bytes: u64) {
        let keep = usize::try_from(bytes.div_ceil(UNIT)).unwrap_or(usize::MAX);
        let excess = self.0.num_permits().saturating_sub(keep);
        drop(self.0.split(excess));
    }

    /// Takes this many bytes out of the reservation. `None` if it has fewer.
    pub fn split(&mut self, bytes: u64) -> Option<Self> {
        let permits = usize::try_from(bytes.div_ceil(UNIT)).ok()?;
        self.0.split(permits).map(Self)
    }

    /// The reserved bytes.
    pub fn bytes(&self) -> u64 {
        u64::try_from(self.0.num_permits()).unwrap_or(u64::MAX).saturating_mul(UNIT)
    }

    /// Keeps this reservation for as long as the buffer or a part of it exists.
    pub fn attach(self, buffer: Vec<u8>) -> Bytes {
        Bytes::from_owner(Reserved { buffer, _reservation: self })
    }
}

/// A buffer with the reservation of its memory.
struct Reserved {
    buffer: Vec<u8>,
    _reservation: Reservation,
}

impl AsRef<[u8]> for Reserved {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn reservations_never_exceed_the_budget() {
        let budget = MemoryBudget::new(10 << 10);
        let first = budget.reserve(6000, WAIT).await.unwrap();
        assert_eq!((first.bytes(), budget.reserved_bytes()), (6 << 10, 6 << 10));
        assert_eq!(budget.reserve(5 << 10, WAIT).await.unwrap_err(), MemoryError::Busy);
        assert_eq!(budget.reserve((10 << 10) + 1, WAIT).await.unwrap_err(), MemoryError::TooLarge);
        let second = budget.reserve(4 << 10, WAIT).await.unwrap();
        assert_eq!(budget.reserved_bytes(), budget.total_bytes());
        drop((first, second));
        assert_eq!(budget.reserved_bytes(), 0);
        assert_eq!(budget.reserve_at_most(u64::MAX, WAIT).await.unwrap().bytes(), 10 << 10);
    }

    #[tokio::test(start_paused = true)]
    async fn large_reservation_is_not_overtaken() {
        let budget = MemoryBudget::new(10 << 10);
        let held = budget.reserve(1 << 10, WAIT).await.unwrap();
        let waiting = budget.clone();
        let tasks = tokio_util::task::TaskTracker::new();
        let large = tasks.spawn(async move { waiting.reserve(10 << 10, WAIT).await.map(|_| ()) });
        tokio::task::yield_now().await;
        assert_eq!(budget.reserve(1 << 10, Duration::from_secs(1)).await.unwrap_err(), MemoryError::Busy);
        drop(held);
        assert_eq!(large.await.unwrap(), Ok(()));
    }

    #[tokio::test]
    async fn buffer_keeps_its_reservation_until_the_last_part_is_dropped() {
        let budget = MemoryBudget::new(10 << 10);
        let mut reservation = budget.reserve(8 << 10, WAIT).await.unwrap();
        reservation.shrink_to(3000);
        assert_eq!(budget.reserved_bytes(), 3 << 10);
        reservation.shrink_to(9000);
        let buffer = reservation.attach(vec![7; 3000]);
        let part = buffer.slice(..2);
        drop(buffer);
        assert_eq!((&part[..], budget.reserved_bytes()), (&[7, 7][..], 3 << 10));
        drop(part);
        assert_eq!(budget.reserved_bytes(), 0);
    }

    #[tokio::test]
    async fn part_of_a_reservation_is_given_back_by_itself() {
        let budget = MemoryBudget::new(10 << 10);
        let mut reservation = budget.reserve(8 << 10, WAIT).await.unwrap();
        let part = reservation.split(3000).unwrap();
        assert_eq!((part.bytes(), reservation.bytes(), budget.reserved_bytes()), (3 << 10, 5 << 10, 8 << 10));
        assert!(reservation.split(6 << 10).is_none());
        drop(part);
        assert_eq!(budget.reserved_bytes(), 5 << 10);
    }

    #[test]
    fn budget_is_bounded() {
        assert_eq!(MemoryBudget::new(0).total_bytes(), 1 << 10);
        assert_eq!(MemoryBudget::new(u64::MAX).total_bytes(), 1 << 40);
    }
}
