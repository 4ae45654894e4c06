//! Request rate limit for each team and environment: governor's GCRA, reported in the header fields of
//! draft-ietf-httpapi-ratelimit-headers.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};

use governor::clock::{Clock, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};
use grabd_domain::credentials::Environment;
use grabd_domain::ids::TeamId;

type Key = (TeamId, Environment);

/// One bucket for each team and environment.
pub(crate) struct RateLimits {
    limiter: RateLimiter<Key, DashMapStateStore<Key>, DefaultClock, StateInformationMiddleware>,
    per_minute: NonZeroU32,
    checks: AtomicU64,
}

/// The limiter's decision about one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimitDecision {
    /// Whether the request may go on.
    pub admitted: bool,
    /// Number of further requests that would be admitted now.
    pub remaining: u32,
    /// Seconds until one more request would be admitted.
    pub reset_s: u64,
    /// Allowed requests per minute.
    pub per_minute: u32,
}

/// Full buckets are removed after this many checks.
const CLEANUP_INTERVAL: u64 = 4096;

impl RateLimits {
    /// Creates a limiter of `per_minute` requests, at least one.
    pub(crate) fn new(per_minute: u32) -> Self {
        let per_minute = NonZeroU32::new(per_minute).unwrap_or(NonZeroU32::MIN);
        let limiter = RateLimiter::dashmap(Quota::per_minute(per_minute)).with_middleware();
        Self { limiter, per_minute, checks: AtomicU64::new(1) }
    }

    /// Takes one request from the team's bucket. Refused requests take nothing.
    pub(crate) fn check(&self, team: TeamId, environment: Environment) -> RateLimitDecision {
        if self.checks.fetch_add(1, Ordering::Relaxed).is_multiple_of(CLEANUP_INTERVAL) {
            self.limiter.retain_recent();
            self.limiter.shrink_to_fit();
        }
        let per_minute = self.per_minute.get();
        match self.limiter.check_key(&(team, environment)) {
            Ok(snapshot) => {
                let remaining = snapshot.remaining_burst_capacity();
                RateLimitDecision {
                    admitted: true,
                    remaining,
                    reset_s: 60_u64.div_ceil(u64::from(per_minute)),
                    per_minute,
                }
            }
            Err(until) => {
                let wait = until.wait_time_from(self.limiter.clock().now());
                let reset_s = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
                RateLimitDecision { admitted: false, remaining: 0, reset_s: reset_s.max(1), per_minute }
            }
        }
    }
}

impl RateLimitDecision {
    /// Value of the `RateLimit` header field.
    pub fn state(self) -> String {
        format!("\"default\";r={};t={}", self.remaining, self.reset_s)
    }

    /// Value of the `RateLimit-Policy` header field.
    pub fn policy(self) -> String {
        format!("\"default\";q={};w=60", self.per_minute)
    }
}

#[cfg(test)]
mod tests {
    use grabd_domain::Timestamp;

    use super::*;
    use crate::random;

    #[test]
    fn requests_beyond_the_limit_are_refused_for_the_same_team_and_environment_only() {
        let limits = RateLimits::new(60);
        let (team, other) = (random::team_id(Timestamp::from_ms(0)), random::team_id(Timestamp::from_ms(0)));
        for left in (0..60).rev() {
            let decision = limits.check(team, Environment::Live);
            assert!(decision.admitted);
            assert!(decision.remaining >= left, "{decision:?}");
        }
        let decision = limits.check(team, Environment::Live);
        assert!(!decision.admitted && decision.reset_s == 1, "{decision:?}");
        assert_eq!(decision.state(), "\"default\";r=0;t=1");
        assert_eq!(decision.policy(), "\"default\";q=60;w=60");
        assert!(limits.check(team, Environment::Test).admitted);
        assert!(limits.check(other, Environment::Live).admitted);
    }
}
