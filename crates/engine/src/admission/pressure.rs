//! How busy the slots are, for operators and for what starts and stops renderers.

use std::time::Duration;

use grabd_domain::admission::{Payer, Throughput};
use grabd_domain::ids::TeamId;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::load::Load;

/// How long a reading is used again, so that its cost does not depend on the number of readers.
const FRESH: Duration = Duration::from_secs(1);

/// How busy the slots are: in a cluster, those of all processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pressure {
    /// All slots.
    pub slots: usize,
    /// Slots that are not in use.
    pub free: usize,
    /// Synchronous grabs.
    pub sync: QueuePressure,
    /// Asynchronous grabs, which are leased after the synchronous ones that wait.
    pub r#async: QueuePressure,
}

/// The queue of one class of grabs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueuePressure {
    /// Grabs that wait for a slot.
    pub waiting: u64,
    /// How long a new grab is expected to wait, of a payer that has never paid. Without slots, as if there were one.
    pub expected_wait: Duration,
}

/// The last reading.
#[derive(Default)]
pub(crate) struct LastPressure(Mutex<Option<(Instant, Pressure)>>);

impl LastPressure {
    /// The last reading if it is recent, else a new one: the load, and the numbers of waiting synchronous and asynchronous
    /// grabs.
    pub(crate) async fn get<E>(&self, read: impl AsyncFnOnce() -> Result<(Load, [u64; 2]), E>) -> Result<Pressure, E> {
        // Held while it is read: others wait for the same reading.
        let mut last = self.0.lock().await;
        if let Some((read_at, pressure)) = *last
            && read_at.elapsed() < FRESH
        {
            return Ok(pressure);
        }
        let (load, waiting) = read().await?;
        let pressure = Pressure::of(load, waiting);
        *last = Some((Instant::now(), pressure));
        Ok(pressure)
    }
}

impl Pressure {
    fn of(load: Load, [sync, r#async]: [u64; 2]) -> Self {
        // Any payer that never paid.
        let unpaid = Payer::of_team(TeamId(uuid::Uuid::nil()));
        let shared = load.wait_limit(unpaid, Duration::ZERO).shared;
        let shared = Throughput { slots: shared.slots.max(1), ..shared };
        let queue = |waiting, ahead| QueuePressure { waiting, expected_wait: shared.wait(ahead).unwrap_or_default() };
        Self {
            slots: load.occupancy.slots,
            free: load.occupancy.idle,
            sync: queue(sync, sync),
            r#async: queue(r#async, sync.saturating_add(r#async)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::load::Occupancy;

    const S: Duration = Duration::from_secs(1);

    fn of(slots: usize, idle: usize, kept: usize, waiting: [u64; 2]) -> Pressure {
        let occupancy = Occupancy { slots, idle, kept, open_to_all: idle.saturating_sub(kept) };
        Pressure::of(Load { occupancy, render: 3 * S, paid_render: S }, waiting)
    }

    #[tokio::test(start_paused = true)]
    async fn reading_is_used_again_for_a_second_unless_it_failed() {
        let last = LastPressure::default();
        let read = async |waiting| {
            let occupancy = Occupancy { slots: 0, idle: 0, kept: 0, open_to_all: 0 };
            let load = Load { occupancy, render: S, paid_render: S };
            last.get(async || Ok::<_, ()>((load, [waiting, 0]))).await.map(|pressure| pressure.sync.waiting)
        };
        assert_eq!(last.get(async || Err("unavailable")).await, Err("unavailable"));
        assert_eq!((read(1).await, read(2).await), (Ok(1), Ok(1)));
        tokio::time::advance(FRESH).await;
        assert_eq!(read(3).await, Ok(3));
    }

    #[test]
    fn expected_wait_grows_with_the_queue_and_shrinks_with_slots() {
        let waits = |pressure: Pressure| (pressure.sync.expected_wait, pressure.r#async.expected_wait);
        assert_eq!(waits(of(4, 2, 0, [0, 0])), (Duration::ZERO, Duration::ZERO));
        // One is ahead of a synchronous grab, and eight of an asynchronous one.
        assert_eq!(waits(of(2, 0, 0, [1, 7])), (3 * S, S * 27 / 2));
        assert_eq!(waits(of(4, 0, 0, [1, 7])), (S * 3 / 2, S * 27 / 4));
        // One of the slots is kept for others.
        assert_eq!(waits(of(4, 1, 1, [0, 0])), (S, S));
        assert_eq!(waits(of(0, 0, 0, [1, 0])), (6 * S, 6 * S), "as if there were a slot");
        let Pressure { slots, free, sync, r#async } = of(4, 2, 0, [1, 7]);
        assert_eq!((slots, free, sync.waiting, r#async.waiting), (4, 2, 1, 7));
    }
}
