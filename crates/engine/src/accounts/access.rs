//! Who calls with a key or a token, and what the credential may be used for.

use std::num::NonZeroU32;

use grabd_domain::Fault;
use grabd_domain::credentials::{Caller, Credential, Scopes};
use grabd_domain::team_limits::TeamLimit;
use grabd_store::accounts::KeyCaller;

use super::rate_limits::RateLimitDecision;
use crate::core::Core;
use crate::digest;
use crate::faults::internal_error;

/// A caller, and what its credential may be used for.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// The caller.
    pub caller: Caller,
    /// The scopes of the credential. Tokens have all of them.
    pub scopes: Scopes,
}

/// Authenticates a credential. Nothing is cached, so that revocation and expiry take effect immediately.
///
/// # Errors
/// [`Fault::Unauthorized`], [`Fault::KeyExpired`] and [`Fault::TeamSuspended`]; [`Fault::InternalError`] when the
/// database fails.
#[tracing::instrument(name = "access.authenticate", skip_all)]
pub async fn authenticate(core: &Core, credential: &Credential) -> Result<Access, Fault> {
    match find_caller(core, credential).await? {
        Some(access) => Ok(access),
        None if is_suspended(core, credential).await.map_err(internal_error("authenticate"))? => {
            Err(Fault::TeamSuspended)
        }
        None => Err(Fault::Unauthorized),
    }
}

/// Counts a request of the caller against the limit of its team and environment. The decision is reported in either
/// case.
///
/// # Errors
/// [`Fault::RateLimitExceeded`].
pub async fn take_request(core: &Core, caller: Caller) -> Result<RateLimitDecision, (Fault, RateLimitDecision)> {
    let own = core.limits.of(caller.team, TeamLimit::RequestsPerMinute).and_then(NonZeroU32::new);
    let decision = core.accounts.rate_limits.take(&core.store, caller.team, caller.environment, own).await;
    if decision.admitted {
        return Ok(decision);
    }
    core.metrics.rate_limited();
    let fault = Fault::RateLimitExceeded { per_minute: decision.per_minute, retry_after_s: decision.reset_s };
    Err((fault, decision))
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
async fn is_suspended(core: &Core, credential: &Credential) -> Result<bool, grabd_store::Error> {
    match credential {
        Credential::Key(key) => core.store.is_key_suspended(&digest::of(key.expose())).await,
        Credential::Token(token) => core.store.is_token_suspended(&digest::of(token.expose()), core.clock.now()).await,
    }
}

async fn find_caller(core: &Core, credential: &Credential) -> Result<Option<Access>, Fault> {
    let now = core.clock.now();
    match credential {
        Credential::Key(key) => {
            let found =
                core.store.authenticate(&digest::of(key.expose())).await.map_err(internal_error("authenticate"))?;
            match found {
                Some(KeyCaller { expires_at: Some(expired_at), .. }) if expired_at <= now => {
                    Err(Fault::KeyExpired { expired_at })
                }
                found => Ok(found.map(|KeyCaller { caller, scopes, .. }| Access { caller, scopes })),
            }
        }
        Credential::Token(token) => {
            let found = core.store.authenticate_token(&digest::of(token.expose()), now).await;
            Ok(found.map_err(internal_error("authenticate"))?.map(|caller| Access { caller, scopes: Scopes::ALL }))
        }
    }
}
