//! Reads due deliveries from the database, each soon after it has become due.

use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_store::webhooks::DueDelivery;

use crate::service::Core;

/// Deliveries read at a time.
const PAGE: u32 = 1000;
/// Reads in a row.
const PAGES: usize = 10;
/// A delivery may be committed this much later than it is due, by this process.
const COMMIT: Duration = Duration::from_secs(1);
/// And this much later with the clocks of other processes, whose deliveries are read once a second.
const CLOCKS: Duration = Duration::from_secs(15);
/// All due deliveries are read again after this time: those of an earlier run, and those that had no room in the line.
const AGAIN: Duration = Duration::from_secs(30);

/// Where the next read begins.
pub(super) struct DueReader {
    /// Deliveries that were due before were read.
    until: Timestamp,
    /// The position of the reading of all due deliveries. `None`: it is at the end.
    position: Option<Timestamp>,
    /// When that began.
    began: Timestamp,
}

impl DueReader {
    pub(super) const fn new(now: Timestamp) -> Self {
        Self { until: now, position: Some(Timestamp::from_ms(0)), began: now }
    }

    /// Deliveries that have become due since the last read.
    pub(super) async fn read_new(&mut self, core: &Core) -> Vec<DueDelivery> {
        self.read_since(core, COMMIT).await
    }

    /// The same with those of other processes, and a part of all due deliveries if they have room in the line.
    pub(super) async fn read(&mut self, core: &Core, has_room: bool) -> Vec<DueDelivery> {
        let mut due = self.read_since(core, CLOCKS).await;
        let now = core.clock.now();
        if self.position.is_none() && now.since(self.began) >= AGAIN {
            (self.position, self.began) = (Some(Timestamp::from_ms(0)), now);
        }
        if let (Some(from), true) = (self.position, has_room) {
            let (found, next) = pages(core, from, now).await;
            due.extend(found);
            self.position = next;
        }
        due
    }

    async fn read_since(&mut self, core: &Core, overlap: Duration) -> Vec<DueDelivery> {
        let now = core.clock.now();
        // A clock that was set back must not hide anything.
        let from = self.until.min(now) - overlap;
        let (due, _) = pages(core, from, now).await;
        self.until = now;
        due
    }
}

/// Some pages of the deliveries that became due in this time, and where the next one begins, if there may be more.
async fn pages(core: &Core, mut from: Timestamp, now: Timestamp) -> (Vec<DueDelivery>, Option<Timestamp>) {
    let mut due = Vec::new();
    for _ in 0..PAGES {
        let page = match core.store.webhooks().due_deliveries(from..=now, now, PAGE).await {
            Ok(page) => page,
            Err(error) => {
                tracing::warn!(%error, "due webhooks could not be read; trying again");
                return (due, Some(from));
            }
        };
        let is_full = page.len() >= usize::try_from(PAGE).unwrap_or(usize::MAX);
        let last = page.last().map_or(now, |last| last.due_at);
        due.extend(page);
        if !is_full {
            return (due, None);
        }
        // Deliveries that are due at the same time must not be read again and again.
        from = if last > from { last } else { last + Duration::from_millis(1) };
    }
    (due, Some(from))
}
