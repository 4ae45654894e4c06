//! A lease that has ended.

use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::admission::Payer;
use grabd_domain::limits::{LEASE_MARGIN, MAX_RENDER_BUDGET};

/// A lease that has ended, for the payer of its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndedLease {
    /// The payer of the grab.
    pub(crate) payer: Payer,
    /// When the slot was assigned.
    pub(crate) since: Timestamp,
    /// Number of the attempt.
    pub(crate) attempt: u32,
    /// How long the slots of earlier attempts were used, which this process lost.
    pub(crate) lost: Duration,
}

impl EndedLease {
    /// How long the slot was used. Bounded, since the clock may have jumped.
    pub(crate) fn used(&self, now: Timestamp) -> Duration {
        now.since(self.since).min(MAX_RENDER_BUDGET + LEASE_MARGIN)
    }
}
