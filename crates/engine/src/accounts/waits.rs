//! The limits of waiting for grabs: long polls and streams of events. They have limits of their own, so that waiting for
//! what was created never takes from the requests that create.

use std::num::NonZeroU32;

use grabd_domain::credentials::{Caller, Environment};
use grabd_domain::ids::TeamId;
use grabd_limiters::{Busy, Turn, Turns};
use grabd_store::Store;

use super::rate_limits::{Bucket, RateLimitDecision, RateLimits};

/// Waits that a team may begin in a minute, for each request that it may send. One that lasts for 25 seconds begins about
/// twice a minute, so that several hundred grabs can be waited for at the usual limit.
pub const WAITS_PER_REQUEST: u32 = 10;
/// Waits that a team may have open at the same time in one process, for each request that it may send in a minute.
pub const OPEN_WAITS_PER_REQUEST: u32 = 5;

/// What the waits of all teams take.
pub(crate) struct Waits {
    /// Those that begin. Each process of a cluster counts for itself.
    begun: RateLimits,
    open: Turns<(TeamId, Environment)>,
}

impl Waits {
    pub(crate) fn new(requests_per_minute: u32) -> Self {
        let begun = RateLimits::new(requests_per_minute.saturating_mul(WAITS_PER_REQUEST), None).of(Bucket::Waits);
        // The listeners limit the number of all: each has a connection or stream. That of a team is given with each wait.
        Self { begun, open: Turns::new(tokio::sync::Semaphore::MAX_PERMITS, 1) }
    }

    /// Counts a wait that begins. `requests_per_minute` is the team's own limit of requests.
    pub(super) async fn begin(
        &self,
        store: &Store,
        caller: Caller,
        requests_per_minute: Option<u32>,
    ) -> RateLimitDecision {
        let own = requests_per_minute.map(|own| own.saturating_mul(WAITS_PER_REQUEST)).and_then(NonZeroU32::new);
        self.begun.take(store, caller.team, caller.environment, own).await
    }

    /// The right to have one more wait open, of at most `limit`.
    pub(super) fn open(&self, caller: Caller, limit: u32) -> Result<Turn, Busy> {
        self.open.try_take_of(&(caller.team, caller.environment), limit as usize)
    }

    /// Forgets the buckets of teams that have no limit of their own any more.
    pub(super) fn retain_own(&self, is_own: impl Fn(TeamId) -> bool) {
        self.begun.retain_own(is_own);
    }
}
