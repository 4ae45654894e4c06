//! The request rate of a team's environment: governor's GCRA, told in the header fields of
//! draft-ietf-httpapi-ratelimit-headers.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};

use governor::clock::{Clock, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};
use grabd_domain::Fault;
use grabd_domain::credentials::Environment;
use grabd_domain::ids::TeamId;

use crate::core::Core;

type Key = (TeamId, Environment);

/// One bucket for each team and environment.
pub(crate) struct Limits {
    limiter: RateLimiter<Key, DashMapStateStore<Key>, DefaultClock, StateInformationMiddleware>,
    per_minute: NonZeroU32,
    checks: AtomicU64,
}

/// What the limiter says about one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) admitted: bool,
    /// Requests that would be admitted right now.
    pub(crate) remaining: u32,
    /// Seconds until one more than that would be.
    pub(crate) reset_s: u64,
    pub(crate) per_minute: u32,
}

/// Full buckets are forgotten every so many checks.
const TIDY_EVERY: u64 = 4096;

impl Limits {
    /// So many per minute, and at least one.
    pub(crate) fn new(per_minute: u32) -> Self {
        let per_minute = NonZeroU32::new(per_minute).unwrap_or(NonZeroU32::MIN);
        let limiter = RateLimiter::dashmap(Quota::per_minute(per_minute)).with_middleware();
        Self { limiter, per_minute, checks: AtomicU64::new(1) }
    }

    /// Takes one request out of the team's bucket. A refused request takes nothing.
    pub(crate) fn check(&self, team: TeamId, environment: Environment) -> Verdict {
        if self.checks.fetch_add(1, Ordering::Relaxed).is_multiple_of(TIDY_EVERY) {
            self.limiter.retain_recent();
            self.limiter.shrink_to_fit();
        }
        let per_minute = self.per_minute.get();
        match self.limiter.check_key(&(team, environment)) {
            Ok(snapshot) => {
                let remaining = snapshot.remaining_burst_capacity();
                Verdict { admitted: true, remaining, reset_s: 60_u64.div_ceil(u64::from(per_minute)), per_minute }
            }
            Err(until) => {
                let wait = until.wait_time_from(self.limiter.clock().now());
                let reset_s = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
                Verdict { admitted: false, remaining: 0, reset_s: reset_s.max(1), per_minute }
            }
        }
    }
}

impl Verdict {
    /// Lets the request pass, or counts that it was refused.
    ///
    /// # Errors
    /// [`Fault::RateLimitExceeded`].
    pub(crate) fn admit(self, core: &Core) -> Result<(), Fault> {
        if self.admitted {
            return Ok(());
        }
        core.metrics.rate_limited();
        Err(Fault::RateLimitExceeded { per_minute: self.per_minute, retry_after_s: self.reset_s })
    }

    /// The `RateLimit` field.
    pub(crate) fn state(self) -> String {
        format!("\"default\";r={};t={}", self.remaining, self.reset_s)
    }

    /// The `RateLimit-Policy` field.
    pub(crate) fn policy(self) -> String {
        format!("\"default\";q={};w=60", self.per_minute)
    }
}

#[cfg(test)]
mod tests {
    use grabd_domain::Timestamp;

    use super::*;
    use crate::chance;

    #[test]
    fn a_bucket_of_sixty_then_refusals_and_nobody_else_pays() {
        let limits = Limits::new(60);
        let (team, other) = (chance::team_id(Timestamp::from_ms(0)), chance::team_id(Timestamp::from_ms(0)));
        for left in (0..60).rev() {
            let verdict = limits.check(team, Environment::Live);
            assert!(verdict.admitted);
            assert!(verdict.remaining >= left, "{verdict:?}");
        }
        let verdict = limits.check(team, Environment::Live);
        assert!(!verdict.admitted && verdict.reset_s == 1, "{verdict:?}");
        assert_eq!(verdict.state(), "\"default\";r=0;t=1");
        assert_eq!(verdict.policy(), "\"default\";q=60;w=60");
        assert!(limits.check(team, Environment::Test).admitted);
        assert!(limits.check(other, Environment::Live).admitted);
    }
}
