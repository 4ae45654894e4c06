//! The state of links in memory.

use grabd_domain::ids::{KeyId, PayerId, TeamId};
use grabd_limiters::{KeyedLimiter, Turns};

use super::in_flight::LinksInFlight;

/// Captures for links at the same time, of all payers. Their slots are limited by the queue.
const MAX_CAPTURES: usize = 1024;

/// The state of links.
#[derive(Default)]
pub(crate) struct Links {
    pub(super) in_flight: LinksInFlight,
    pub(super) limits: LinkLimits,
}

/// The state of the limits.
pub(super) struct LinkLimits {
    pub(super) keys: KeyedLimiter<KeyId>,
    pub(super) teams: KeyedLimiter<(TeamId, bool)>,
    pub(super) captures: Turns<PayerId>,
}

impl Default for LinkLimits {
    fn default() -> Self {
        // The quotas of keys are those of their teams.
        Self {
            keys: KeyedLimiter::per_minute(1),
            teams: KeyedLimiter::per_minute(1),
            captures: Turns::new(MAX_CAPTURES, 1),
        }
    }
}
