//! Limits of the captures that signed links cause. Whoever has a published link opens it as often as they like, so these
//! are apart from the limits of the team's API.
//!
//! - Each key that signs links has the requests per minute of its team, and all keys of a team and environment together have
//!   twice as many. Only links that no earlier image answers count.
//! - The links of a payer that this process opens use at most half of the slots at the same time. The others wait.
//! - In the queue, and for failed renders, the links of a payer are a payer of their own: see
//!   [`Payer::for_links`](grabd_domain::admission::Payer::for_links).

use std::num::NonZeroU32;
use std::time::Duration;

use grabd_domain::Fault;
use grabd_domain::credentials::{Caller, Environment};
use grabd_domain::ids::KeyId;
use grabd_limiters::{Quota, Turn, Window};
use tokio::time::{Instant, timeout_at};

use crate::accounts::{Bucket, RateLimitDecision, requests_per_minute};
use crate::admission;
use crate::billing::find_payer;
use crate::error::Error;
use crate::error::IMAGES_BUSY;
use crate::service::Core;

/// What all keys of a team and environment may use, in quotas of one key.
const KEYS_OF_TEAM: NonZeroU32 = NonZeroU32::new(2).expect("not zero");
/// The part of the slots that links of a payer may use: one of this number.
const SLOT_SHARE: usize = 2;
/// How long a request waits for its turn. The rest of the time of a synchronous grab is for its capture.
const WAIT_LIMIT: Duration = Duration::from_secs(15);

/// Counts a capture for a link of this key.
///
/// # Errors
/// [`Fault::RateLimitExceeded`] when the quota of the key, or of all keys of its team, is used up.
pub(super) fn take(core: &Core, caller: Caller, key: KeyId) -> Result<RateLimitDecision, (Fault, RateLimitDecision)> {
    let limits = &core.links.limits;
    let per_minute = requests_per_minute(core, caller.team);
    let quota = Quota::per_minute(per_minute.get());
    let (team, of_team) = ((caller.team, caller.environment == Environment::Live), quota.times(KEYS_OF_TEAM));
    let taken = limits
        .teams
        .take_of(&team, of_team)
        .and_then(|_| limits.keys.take_of(&key, quota).inspect_err(|_| limits.teams.give_back(&team, of_team)));
    let decision = |Window { limit, remaining, reset_s, .. }, admitted| RateLimitDecision {
        bucket: Bucket::Requests,
        admitted,
        remaining,
        reset_s,
        per_minute: limit,
        async_queue: None,
    };
    match taken {
        Ok(window) => Ok(decision(window, true)),
        Err(window) => {
            core.metrics.rate_limited();
            let Window { limit, reset_s, .. } = window;
            Err((Fault::RateLimitExceeded { per_minute: limit, retry_after_s: reset_s }, decision(window, false)))
        }
    }
}

/// Waits until the links of the caller's payer may use another slot. Placeholders of test keys need none.
///
/// # Errors
/// [`Fault::ImagesBusy`] if that takes too long.
pub(super) async fn turn(core: &Core, caller: Caller, started: Instant) -> Result<Option<Turn>, Error> {
    if caller.environment == Environment::Test {
        return Ok(None);
    }
    let payer = find_payer(core, caller.team).await?;
    let slots = admission::slots(core);
    let turn = core.links.limits.captures.take_of(&payer.id, slots / SLOT_SHARE);
    Ok(Some(timeout_at(started + WAIT_LIMIT, turn).await.map_err(|_| IMAGES_BUSY)?))
}
