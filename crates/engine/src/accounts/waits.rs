//! The limits of waiting for grabs: long polls and streams of events. They have limits of their own, so that waiting for
//! what was created never takes from the requests that create.

use std::num::NonZeroU32;

use grabd_domain::Fault;
use grabd_domain::credentials::{Caller, Environment};
use grabd_domain::faults::WaitLimit;
use grabd_domain::ids::TeamId;
use grabd_domain::team_limits::TeamLimit;
use grabd_limiters::{Turn, Turns};

use super::access::requests_per_minute;
use super::rate_limits::{Bucket, RateLimitDecision, RateLimits};
use crate::core::Core;

/// Waits that a team may begin in a minute, for each request that it may send. One that lasts for 25 seconds begins about
/// twice a minute, so that several hundred grabs can be waited for at the usual limit.
pub const WAITS_PER_REQUEST: u32 = 10;
/// Waits that a team may have open at the same time in one process, for each request that it may send in a minute.
pub const OPEN_WAITS_PER_REQUEST: u32 = 5;
/// Retry delay while so many are open. Waits end when their grabs do.
const OPEN_RETRY_S: u64 = 2;

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

    /// Forgets the buckets of teams that have no limit of their own any more.
    pub(super) fn retain_own(&self, is_own: impl Fn(TeamId) -> bool) {
        self.begun.retain_own(is_own);
    }
}

/// Counts a wait that begins against the limit of the caller's team and environment. The decision is reported in either
/// case.
///
/// # Errors
/// [`Fault::WaitLimitExceeded`].
pub async fn begin_wait(core: &Core, caller: Caller) -> Result<RateLimitDecision, (Fault, RateLimitDecision)> {
    let own = core.limits.of(caller.team, TeamLimit::RequestsPerMinute);
    let own = own.map(|own| own.saturating_mul(WAITS_PER_REQUEST)).and_then(NonZeroU32::new);
    let decision = core.accounts.waits.begun.take(&core.store, caller.team, caller.environment, own).await;
    if decision.admitted {
        return Ok(decision);
    }
    core.metrics.rate_limited();
    let limit = WaitLimit::PerMinute(decision.per_minute);
    Err((Fault::WaitLimitExceeded { limit, retry_after_s: decision.reset_s }, decision))
}

/// The right to have one more wait open, until it is dropped.
///
/// # Errors
/// [`Fault::WaitLimitExceeded`].
pub fn open_wait(core: &Core, caller: Caller) -> Result<Turn, Fault> {
    let limit = requests_per_minute(core, caller.team).get().saturating_mul(OPEN_WAITS_PER_REQUEST);
    let open = &core.accounts.waits.open;
    open.try_take_of(&(caller.team, caller.environment), limit as usize).map_err(|_| {
        core.metrics.rate_limited();
        Fault::WaitLimitExceeded { limit: WaitLimit::Open(limit), retry_after_s: OPEN_RETRY_S }
    })
}
