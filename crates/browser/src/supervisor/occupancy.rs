//! A grab's use of a slot, which lasts until nothing of the grab runs any more.
//!
//! A page may keep the processor busy after its capture has ended. If its slot were free at once, one account could keep more
//! browsers busy than it has slots, and pay for none of that time.

use std::sync::Arc;
use std::time::Duration;

use grabd_domain::render::SlotHold;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::lanes::LaneGuard;
use super::shared::Shared;

/// How long a slot waits for the successor of its browser. Starting one takes a second.
const SUCCESSOR_LIMIT: Duration = Duration::from_secs(30);

/// Keeps a slot, and the lane in which the grab is rendered, until it is dropped and the lane has a browser that works. Each
/// tab of the grab has a share of it until it is disposed of.
pub(super) struct Occupancy {
    shared: Arc<Shared>,
    kept: Option<Kept>,
}

struct Kept {
    lane: Option<LaneGuard>,
    _slot: OwnedSemaphorePermit,
    _hold: SlotHold,
}

impl Occupancy {
    pub(super) fn new(shared: Arc<Shared>, slot: OwnedSemaphorePermit, hold: SlotHold) -> Self {
        Self { shared, kept: Some(Kept { lane: None, _slot: slot, _hold: hold }) }
    }

    /// The same, in a lane.
    pub(super) fn in_lane(mut self, lane: LaneGuard) -> Self {
        if let Some(kept) = &mut self.kept {
            kept.lane = Some(lane);
        }
        self
    }

    /// The number of the lane. The first one if the grab has a browser of its own.
    pub(super) fn lane(&self) -> usize {
        self.kept.as_ref().and_then(|kept| kept.lane.as_ref()).map_or(0, LaneGuard::lane)
    }

    /// Notes that the grab has ended, and only its tabs are still to be disposed of.
    pub(super) fn grab_ended(&self) {
        if let Some(lane) = self.kept.as_ref().and_then(|kept| kept.lane.as_ref()) {
            lane.begin_return();
        }
    }
}

impl Drop for Occupancy {
    fn drop(&mut self) {
        let Some(kept) = self.kept.take() else { return };
        let Some(lane) = kept.lane.as_ref().map(LaneGuard::lane) else { return };
        if self.shared.lane_works(lane) {
            return;
        }
        // The browser is being ended. Its successor is started when its processes are gone.
        let shared = self.shared.clone();
        self.shared.setup.tracker.spawn(async move {
            let replaced = timeout(SUCCESSOR_LIMIT, shared.lane_replaced(lane));
            // At the shutdown, or when no browser can be started, nobody waits for the slot.
            let _ = shared.shutdown.run_until_cancelled(replaced).await;
            drop(kept);
        });
    }
}
