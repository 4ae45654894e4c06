//! Request rate limit for each team and environment: governor's GCRA, reported in the header fields of
//! draft-ietf-httpapi-ratelimit-headers.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};
use grabd_domain::credentials::Environment;
use grabd_domain::ids::TeamId;
use grabd_store::Store;

use crate::limits::{OwnBuckets, SharedLimits, Unknown};

type Key = (TeamId, Environment);

/// One bucket for each team and environment.
pub(crate) struct RateLimits {
    limiter: RateLimiter<Key, DashMapStateStore<Key>, DefaultClock, StateInformationMiddleware>,
    /// Of teams with a limit of their own.
    own: OwnBuckets<Key>,
    per_minute: NonZeroU32,
    bucket: Bucket,
    checks: AtomicU64,
    /// What the processes of a cluster admit together. `None`: this is the only process.
    shared: Option<SharedLimits>,
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bucket {
    /// Requests.
    Requests,
    /// Waits for grabs: long polls and streams of events.
    Waits,
}

impl Bucket {
    /// The name of the policy in the header fields.
    const fn name(self) -> &'static str {
        match self {
            Self::Requests => "default",
            Self::Waits => "waits",
        }
    }
}

/// The limiter's decision about one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimitDecision {
    /// What was counted.
    pub bucket: Bucket,
    /// Whether the request may go on.
    pub admitted: bool,
    /// Number of further requests that would be admitted now.
    pub remaining: u32,
    /// Seconds until one more request would be admitted.
    pub reset_s: u64,
    /// Allowed requests per minute.
    pub per_minute: u32,
    /// The team's own limit of open asynchronous grabs, if the response is to name it.
    pub async_queue: Option<u32>,
}

const MINUTE: Duration = Duration::from_secs(60);
/// Full buckets are removed after this many checks.
const CLEANUP_INTERVAL: u64 = 4096;

impl RateLimits {
    /// Creates a limiter of `per_minute` requests, at least one.
    pub(crate) fn new(per_minute: u32, shared: Option<SharedLimits>) -> Self {
        let per_minute = NonZeroU32::new(per_minute).unwrap_or(NonZeroU32::MIN);
        let limiter = RateLimiter::dashmap(Quota::per_minute(per_minute)).with_middleware();
        let (own, bucket) = (OwnBuckets::new(MINUTE), Bucket::Requests);
        Self { limiter, own, per_minute, bucket, checks: AtomicU64::new(1), shared }
    }

    /// The same limiter for something else than requests.
    pub(crate) fn of(self, bucket: Bucket) -> Self {
        Self { bucket, ..self }
    }

    /// Takes one request of the team from what all processes may admit. `own` is the team's own limit. Only processes
    /// of a cluster wait for anything; while the database does not respond in time, each counts for itself.
    pub(crate) async fn take(
        &self,
        store: &Store,
        team: TeamId,
        environment: Environment,
        own: Option<NonZeroU32>,
    ) -> RateLimitDecision {
        self.take_several(store, (team, environment), own, NonZeroU32::MIN).await
    }

    /// Takes several requests at once, at most as many as are allowed in a minute. Refused ones take nothing.
    pub(crate) async fn take_several(
        &self,
        store: &Store,
        key: Key,
        own: Option<NonZeroU32>,
        count: NonZeroU32,
    ) -> RateLimitDecision {
        // Also in a cluster, so that it is right when the database fails.
        let local = self.check_several(key, own, count);
        let Some(shared) = &self.shared else { return local };
        let per_minute = own.unwrap_or(self.per_minute);
        let taken = match count.get() {
            1 => shared.take(store, key, per_minute).await,
            _ => shared.take_several(store, key, per_minute, count).await,
        };
        match taken {
            Ok(taken) => RateLimitDecision::new(taken, per_minute, self.bucket),
            Err(Unknown) => local,
        }
    }

    /// Requests per minute of teams without a limit of their own.
    pub(crate) const fn usual(&self) -> NonZeroU32 {
        self.per_minute
    }

    /// Forgets what this process has leased and no longer uses.
    pub(crate) fn forget_unused_leases(&self) {
        if let Some(shared) = &self.shared {
            shared.forget_unused();
        }
    }

    /// Takes requests from the team's bucket. Refused requests take nothing. `own` is the team's own limit.
    fn check_several(&self, key: Key, own: Option<NonZeroU32>, count: NonZeroU32) -> RateLimitDecision {
        match own {
            Some(own) => RateLimitDecision::new(self.own.take_several(key, own, count), own, self.bucket),
            None => self.check_usual(key, count),
        }
    }

    /// Forgets the buckets of teams that have no limit of their own any more.
    pub(crate) fn retain_own(&self, is_own: impl Fn(TeamId) -> bool) {
        self.own.retain(|(team, _)| is_own(*team));
    }

    fn check_usual(&self, key: Key, count: NonZeroU32) -> RateLimitDecision {
        if self.checks.fetch_add(1, Ordering::Relaxed).is_multiple_of(CLEANUP_INTERVAL) {
            self.limiter.retain_recent();
            self.limiter.shrink_to_fit();
        }
        let taken = match self.limiter.check_key_n(&key, count.min(self.per_minute)) {
            Ok(Ok(snapshot)) => Ok(snapshot.remaining_burst_capacity()),
            Ok(Err(until)) => Err(until.wait_time_from(self.limiter.clock().now())),
            // More than the whole limit, which the minimum rules out.
            Err(_) => Err(MINUTE),
        };
        RateLimitDecision::new(taken, self.per_minute, self.bucket)
    }
}

impl RateLimitDecision {
    /// From how many requests are left in a bucket of a size, or the time until there is one.
    fn new(taken: Result<u32, Duration>, per_minute: NonZeroU32, bucket: Bucket) -> Self {
        let (per_minute, async_queue) = (per_minute.get(), None);
        match taken {
            Ok(remaining) => {
                let reset_s = MINUTE.as_secs().div_ceil(u64::from(per_minute));
                Self { bucket, admitted: true, remaining, reset_s, per_minute, async_queue }
            }
            Err(wait) => {
                let reset_s = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
                Self { bucket, admitted: false, remaining: 0, reset_s: reset_s.max(1), per_minute, async_queue }
            }
        }
    }

    /// Value of the `RateLimit` header field.
    pub fn state(self) -> String {
        format!("\"{}\";r={};t={}{}", self.bucket.name(), self.remaining, self.reset_s, self.queue())
    }

    /// Value of the `RateLimit-Policy` header field.
    pub fn policy(self) -> String {
        format!("\"{}\";q={};w=60{}", self.bucket.name(), self.per_minute, self.queue())
    }

    /// The limit of open asynchronous grabs, as the edge reports it for teams without their own.
    fn queue(self) -> String {
        let queue = |limit| format!(", \"async-queue\";q={limit};qu=\"concurrent-requests\"");
        self.async_queue.map(queue).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use grabd_domain::Timestamp;

    use super::*;
    use crate::random;

    fn check(limits: &RateLimits, key: Key, own: Option<NonZeroU32>) -> RateLimitDecision {
        limits.check_several(key, own, NonZeroU32::MIN)
    }

    #[test]
    fn requests_beyond_the_limit_are_refused_for_the_same_team_and_environment_only() {
        let limits = RateLimits::new(60, None);
        let (team, other) = (random::team_id(Timestamp::from_ms(0)), random::team_id(Timestamp::from_ms(0)));
        for left in (0..60).rev() {
            let decision = check(&limits, (team, Environment::Live), None);
            assert!(decision.admitted);
            assert!(decision.remaining >= left, "{decision:?}");
        }
        let decision = check(&limits, (team, Environment::Live), None);
        assert!(!decision.admitted && decision.reset_s == 1, "{decision:?}");
        assert_eq!(decision.state(), "\"default\";r=0;t=1");
        assert_eq!(decision.policy(), "\"default\";q=60;w=60");
        assert!(check(&limits, (team, Environment::Test), None).admitted);
        assert!(check(&limits, (other, Environment::Live), None).admitted);
    }

    #[test]
    fn own_limit_of_a_team_replaces_the_usual_one_until_it_is_removed() {
        let limits = RateLimits::new(60, None);
        let team = random::team_id(Timestamp::from_ms(0));
        let check_own = |own| check(&limits, (team, Environment::Live), NonZeroU32::new(own));
        assert_eq!(check_own(0).per_minute, 60);
        for left in [1, 0] {
            let decision = check_own(2);
            assert_eq!((decision.admitted, decision.remaining, decision.per_minute), (true, left, 2));
        }
        let refused = check_own(2);
        assert!(!refused.admitted && (29..=30).contains(&refused.reset_s), "{refused:?}");
        assert_eq!(refused.policy(), "\"default\";q=2;w=60");
        assert!(check(&limits, (team, Environment::Test), NonZeroU32::new(2)).admitted);
        // A changed limit is in effect at once, and so is its removal.
        assert_eq!((check_own(3).remaining, check_own(3).remaining), (2, 1));
        assert!(check_own(0).admitted);
        limits.retain_own(|_| false);
        assert_eq!(check_own(3).remaining, 2);
    }

    #[test]
    fn waits_have_a_policy_of_their_own() {
        let limits = RateLimits::new(600, None).of(Bucket::Waits);
        let decision = check(&limits, (random::team_id(Timestamp::from_ms(0)), Environment::Live), None);
        assert_eq!(
            (decision.policy(), decision.state()),
            ("\"waits\";q=600;w=60".into(), "\"waits\";r=599;t=1".into())
        );
    }

    #[test]
    fn own_limit_of_the_queue_is_named_after_the_rate_limit() {
        let usual = RateLimitDecision::new(Ok(1), NonZeroU32::MIN, Bucket::Requests);
        let decision = RateLimitDecision { async_queue: Some(7), ..usual };
        assert_eq!(decision.policy(), "\"default\";q=1;w=60, \"async-queue\";q=7;qu=\"concurrent-requests\"");
        assert_eq!(decision.state(), "\"default\";r=1;t=60, \"async-queue\";q=7;qu=\"concurrent-requests\"");
    }
}
