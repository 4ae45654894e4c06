//! How far the cleanup that cannot examine everything at once has come. It is in memory: after a restart it begins
//! again.

use std::collections::BTreeMap;

use grabd_domain::Timestamp;
use grabd_store::limits::TeamLimitsVersion;
use grabd_store::retention::{Erasure, UnverifiedCursor};
use parking_lot::{Mutex, MutexGuard};

/// The progress of the cleanup.
#[derive(Default)]
pub(crate) struct CleanupProgress(Mutex<State>);

/// The positions of each kind of cleanup.
#[derive(Default)]
pub(super) struct State {
    /// The purges of grabs whose teams have different retentions.
    pub(super) retention: RetentionProgress,
    /// The last account that was examined in this round.
    pub(super) unverified: Option<UnverifiedCursor>,
    /// When the next round of accounts begins.
    pub(super) unverified_at: Option<Timestamp>,
    /// The erasure that was continued last.
    pub(super) erased: Option<Erasure>,
}

/// The positions of the purges of grabs.
#[derive(Default)]
pub(super) struct RetentionProgress {
    /// The limits for which the positions are valid.
    pub(super) version: Option<TeamLimitsVersion>,
    /// When the oldest grabs were examined last.
    pub(super) since: Option<Timestamp>,
    /// By limit and number of days: all grabs that ended before this time were examined.
    pub(super) ends: BTreeMap<(&'static str, u32), Timestamp>,
    /// Which number of days comes first, so that all have their turns.
    pub(super) turn: usize,
}

impl CleanupProgress {
    /// Held for a few moments only: what waits for the database works on a copy.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}
