//! Leases that ended a short time ago.

use std::collections::HashMap;
use std::time::Duration;

use grabd_domain::Timestamp;
use grabd_domain::ids::{GrabId, LeaseToken, SessionId};
use grabd_domain::limits::{MAX_LEASE_MARGIN, MAX_RENDER_BUDGET};

use crate::admission::EndedLease;

/// The longest lease.
pub(super) const MAX_LEASE: Duration = Duration::from_secs(MAX_RENDER_BUDGET.as_secs() + MAX_LEASE_MARGIN.as_secs());

/// Leases that ended a short time ago. Their number is bounded by the time for which they are remembered.
#[derive(Default)]
pub(super) struct EndedLeases {
    /// Their slots may still be in use.
    pub(super) leases: HashMap<LeaseToken, (SessionId, EndedLease)>,
    /// How long the slots of attempts were used that were lost, and when the last one was, by grab.
    pub(super) lost: HashMap<GrabId, (Duration, Timestamp)>,
}

impl EndedLeases {
    pub(super) fn forget_session(&mut self, id: SessionId) {
        self.leases.retain(|_, (session, _)| *session != id);
    }

    pub(super) fn forget_expired(&mut self, now: Timestamp) {
        self.leases.retain(|_, (_, ended)| now.since(ended.since) < 2 * MAX_LEASE);
        self.lost.retain(|_, (_, at)| now.since(*at) < MAX_LEASE);
    }

    /// How long the slots of earlier attempts at a grab were used.
    pub(super) fn take_lost(&mut self, grab: GrabId) -> Duration {
        self.lost.remove(&grab).map_or(Duration::ZERO, |(lost, _)| lost)
    }
}
