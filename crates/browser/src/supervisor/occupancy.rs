//! A grab's use of a slot, which lasts until nothing of the grab runs any more.
//!
//! A page may keep the processor busy after its capture has ended. If its slot were free at once, one account could keep more
//! browsers busy than it has slots, and pay for none of that time.

use std::sync::Arc;
use std::time::Duration;

use grabd_domain::render::SlotHold;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::lanes::{LaneGuard, Lanes};

/// How long a slot waits for the successor of its browser. Starting one takes a second.
const SUCCESSOR_LIMIT: Duration = Duration::from_secs(30);

/// Keeps a slot, and the lane in which the grab is rendered, until it is dropped and the lane has a browser that works. Each
/// tab of the grab has a share of it until it is disposed of.
pub(super) struct Occupancy {
    successors: Successors,
    kept: Option<Kept>,
}

/// What waiting for the successor of a browser takes.
pub(super) struct Successors {
    pub(super) lanes: Arc<Lanes>,
    pub(super) tracker: TaskTracker,
    pub(super) shutdown: CancellationToken,
}

struct Kept {
    lane: Option<LaneGuard>,
    _slot: OwnedSemaphorePermit,
    _hold: SlotHold,
}

impl Occupancy {
    pub(super) fn new(successors: Successors, slot: OwnedSemaphorePermit, hold: SlotHold) -> Self {
        Self { successors, kept: Some(Kept { lane: None, _slot: slot, _hold: hold }) }
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
        let (lanes, shutdown) = (self.successors.lanes.clone(), self.successors.shutdown.clone());
        if lanes.lane(lane).works() {
            return;
        }
        // The browser is being ended. Its successor is started when its processes are gone.
        self.successors.tracker.spawn(async move {
            let replaced = timeout(SUCCESSOR_LIMIT, lanes.lane(lane).replaced());
            // At the shutdown, or when no browser can be started, nobody waits for the slot.
            let _ = shutdown.run_until_cancelled(replaced).await;
            drop(kept);
        });
    }
}
