//! Creates a monitor for each of several pages, all or none.

use std::num::NonZeroU32;

use futures::future::join_all;
use grabd_domain::Fault;
use grabd_domain::credentials::Caller;
use grabd_domain::monitor::{Monitor, MonitorBatchRequest, MonitorSpec, at_place};
use grabd_domain::target::TargetUrl;

use super::manage::{check_options, created, new_monitor, too_many};
use crate::accounts::{RateLimitDecision, own_async_queue, take_requests};
use crate::error::Error;
use crate::service::Core;
use crate::targets;

/// Hosts that are looked up at the same time for one request.
const LOOKUPS: usize = 10;

/// The monitors that a request has created.
#[derive(Debug)]
pub struct MonitorBatch {
    /// One for each URL, in their order.
    pub monitors: Vec<Monitor>,
    /// The state of the rate limit, if requests were counted here.
    pub decision: Option<RateLimitDecision>,
}

/// Creates a monitor for each URL of a request, in their order. They have the same settings, and are created in one transaction:
/// if one of them cannot be created, none is. One request of the caller has been counted; each page after the first counts as
/// another, since its host is looked up.
///
/// # Errors
/// The same as of the create of one monitor. An invalid URL is named by its place, such as `urls[3]`.
#[tracing::instrument(name = "monitors.create_batch", skip_all, fields(count = request.urls.len()))]
pub async fn create_batch(core: &Core, caller: Caller, request: &MonitorBatchRequest) -> Result<MonitorBatch, Error> {
    let limits = core.settings.operations.monitors;
    let specs = request.parse(limits.shortest)?;
    let Some(first) = specs.first() else { return Ok(MonitorBatch { monitors: Vec::new(), decision: None }) };
    // All of them have the same options.
    check_options(core, caller, &first.capture).await?;
    let (count, keep) = (specs.len(), first.keep);
    // The transaction decides. This saves the lookups for a request that it would refuse.
    let existing = core.store.monitors().count(caller.team, caller.environment).await?;
    if existing + u64::try_from(count).unwrap_or(u64::MAX) > u64::from(limits.per_team) {
        return Err(too_many(core, count).into());
    }
    let decision = count_further(core, caller, count).await?;
    check_pages(core, &specs).await?;
    let now = core.clock.now();
    let mut new = Vec::with_capacity(count);
    for spec in specs {
        new.push(new_monitor(core, caller, spec, now)?);
    }
    let outcome = core.store_for(caller).monitors().create_all(new).await?;
    Ok(MonitorBatch { monitors: created(core, outcome, count, keep)?, decision })
}

/// Counts a request for each page after the first.
async fn count_further(core: &Core, caller: Caller, pages: usize) -> Result<Option<RateLimitDecision>, Fault> {
    let further = u32::try_from(pages).unwrap_or(u32::MAX).saturating_sub(1);
    let Some(further) = NonZeroU32::new(further) else { return Ok(None) };
    let decision = take_requests(core, caller, further).await.map_err(|(fault, _)| fault)?;
    Ok(Some(RateLimitDecision { async_queue: own_async_queue(core, caller), ..decision }))
}

/// Checks the URLs, and looks each host up once.
async fn check_pages(core: &Core, specs: &[MonitorSpec]) -> Result<(), Fault> {
    let mut hosts: Vec<(usize, &TargetUrl)> = Vec::new();
    for (place, spec) in specs.iter().enumerate() {
        let url = &spec.capture.url;
        targets::check_page_url(core, url).map_err(|fault| at_place(fault, place))?;
        if hosts.iter().all(|(_, other)| other.host() != url.host()) {
            hosts.push((place, url));
        }
    }
    for some in hosts.chunks(LOOKUPS) {
        let mut lookups = Vec::with_capacity(some.len());
        for (_, url) in some {
            lookups.push(targets::check_host(core, url));
        }
        for ((place, _), checked) in some.iter().zip(join_all(lookups).await) {
            checked.map_err(|fault| at_place(fault, *place))?;
        }
    }
    Ok(())
}
