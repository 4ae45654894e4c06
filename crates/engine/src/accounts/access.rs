//! Who calls with a key or a token, and what the credential may be used for.

use std::num::NonZeroU32;

use grabd_domain::credentials::{Caller, Credential, Scopes};
use grabd_domain::faults::WaitLimit;
use grabd_domain::ids::TeamId;
use grabd_domain::team_limits::TeamLimit;
use grabd_domain::{Fault, Timestamp};
use grabd_limiters::Turn;
use grabd_store::accounts::KeyCaller;
use grabd_store::oauth::TokenCaller;

use super::rate_limits::RateLimitDecision;
use super::waits::OPEN_WAITS_PER_REQUEST;
use crate::digest;
use crate::error::Error;
use crate::service::Core;

/// A caller, and what its credential may be used for.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// The caller.
    pub caller: Caller,
    /// The scopes of the credential. Those of a token follow from the OAuth scopes that were granted.
    pub scopes: Scopes,
}

/// Authenticates a credential. Changes by this process take effect immediately, and those of others after
/// [`super::ACCEPTED_FOR`].
///
/// # Errors
/// [`Fault::Unauthorized`], [`Fault::KeyExpired`] and [`Fault::TeamSuspended`]; [`Fault::Unavailable`] and
/// When the database fails.
#[tracing::instrument(name = "access.authenticate", skip_all)]
pub async fn authenticate(core: &Core, credential: &Credential) -> Result<Access, Error> {
    let hash = match credential {
        Credential::Key(key) => digest::of(key.expose()),
        Credential::Token(token) => digest::of(token.expose()),
    };
    let (cache, now) = (&core.accounts.accepted, core.clock.now());
    // Read before the query: a change after it makes the entry invalid.
    let version = core.store.access_version();
    if let Some((caller, scopes)) = cache.get(&hash, version, now) {
        return Ok(Access { caller, scopes });
    }
    match find_caller(core, credential, &hash, now).await? {
        Some((access, expires_at)) => {
            cache.insert(hash, version, (access.caller, access.scopes), expires_at);
            Ok(access)
        }
        None if is_suspended(core, credential, &hash, now).await? => Err(Fault::TeamSuspended.into()),
        None => Err(Fault::Unauthorized.into()),
    }
}

/// Counts a request of the caller against the limit of its team and environment. The decision is reported in either
/// case.
///
/// # Errors
/// [`Fault::RateLimitExceeded`].
pub async fn take_request(core: &Core, caller: Caller) -> Result<RateLimitDecision, (Fault, RateLimitDecision)> {
    take_requests(core, caller, NonZeroU32::MIN).await
}

/// Counts several requests of a caller at once, at most as many as are allowed in a minute. If there are fewer, none is
/// counted, so that a repetition after the delay is admitted.
///
/// # Errors
/// [`Fault::RateLimitExceeded`], with the time until as many are admitted.
pub async fn take_requests(
    core: &Core,
    caller: Caller,
    count: NonZeroU32,
) -> Result<RateLimitDecision, (Fault, RateLimitDecision)> {
    let own = core.limits.of(caller.team, TeamLimit::RequestsPerMinute).and_then(NonZeroU32::new);
    let key = (caller.team, caller.environment);
    let decision = core.accounts.rate_limits.take_several(&core.store, key, own, count).await;
    if decision.admitted {
        return Ok(decision);
    }
    core.metrics.rate_limited();
    let fault = Fault::RateLimitExceeded { per_minute: decision.per_minute, retry_after_s: decision.reset_s };
    Err((fault, decision))
}

/// Retry delay while a team has as many open waits as it may have. Waits end when their grabs do.
const OPEN_WAITS_RETRY_S: u64 = 2;

/// Counts a wait for a grab that begins against the limit of the caller's team and environment. The decision is reported in
/// either case.
///
/// # Errors
/// [`Fault::WaitLimitExceeded`].
pub async fn begin_wait(core: &Core, caller: Caller) -> Result<RateLimitDecision, (Fault, RateLimitDecision)> {
    let own = core.limits.of(caller.team, TeamLimit::RequestsPerMinute);
    let decision = core.accounts.waits.begin(&core.store, caller, own).await;
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
    core.accounts.waits.open(caller, limit).map_err(|_| {
        core.metrics.rate_limited();
        Fault::WaitLimitExceeded { limit: WaitLimit::Open(limit), retry_after_s: OPEN_WAITS_RETRY_S }
    })
}

/// The right to have as many more waits open, until it is dropped.
///
/// # Errors
/// [`Fault::WaitLimitExceeded`].
pub fn open_waits(core: &Core, caller: Caller, count: usize) -> Result<Vec<Turn>, Fault> {
    (0..count).map(|_| open_wait(core, caller)).collect()
}

/// The requests per minute of a team in one environment.
pub(crate) fn requests_per_minute(core: &Core, team: TeamId) -> NonZeroU32 {
    let own = core.limits.of(team, TeamLimit::RequestsPerMinute).and_then(NonZeroU32::new);
    own.unwrap_or(core.accounts.rate_limits.usual())
}

/// The team's own limit of open asynchronous grabs, for responses that name it.
pub fn own_async_queue(core: &Core, caller: Caller) -> Option<u32> {
    core.limits.of(caller.team, TeamLimit::AsyncQueue)
}

/// Records that the caller's key or app was used now.
pub fn record_use(core: &Core, caller: Caller) {
    core.accounts.last_use.record(caller.principal);
}

/// Whether the credential opens nothing only because its team is suspended.
async fn is_suspended(
    core: &Core,
    credential: &Credential,
    hash: &[u8; 32],
    now: Timestamp,
) -> Result<bool, grabd_store::Error> {
    match credential {
        Credential::Key(_) => core.store.accounts().is_key_suspended(hash).await,
        Credential::Token(_) => core.store.oauth().is_token_suspended(hash, now).await,
    }
}

/// What the credential may be used for, and when it expires by itself.
async fn find_caller(
    core: &Core,
    credential: &Credential,
    hash: &[u8; 32],
    now: Timestamp,
) -> Result<Option<(Access, Option<Timestamp>)>, Error> {
    match credential {
        Credential::Key(_) => match core.store.accounts().authenticate(hash).await? {
            Some(KeyCaller { expires_at: Some(expired_at), .. }) if expired_at <= now => {
                Err(Fault::KeyExpired { expired_at }.into())
            }
            found => Ok(found.map(|KeyCaller { caller, scopes, expires_at }| (Access { caller, scopes }, expires_at))),
        },
        Credential::Token(_) => {
            let found = core.store.oauth().authenticate_token(hash, now).await?;
            Ok(found.map(|TokenCaller { caller, scopes, expires_at }| {
                (Access { caller, scopes: scopes.to_api() }, Some(expires_at))
            }))
        }
    }
}
