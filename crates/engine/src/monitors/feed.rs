//! The feed and the badge of a monitor: for whoever knows their addresses.

use grabd_domain::Timestamp;
use grabd_domain::credentials::Caller;
use grabd_domain::ids::MonitorId;
use grabd_domain::monitor::{Monitor, Run};

use super::manage::{monitor_of, not_found};
use crate::error::Error;
use crate::service::Core;
use crate::{digest, random};

/// The newest runs that a feed has.
const RUNS: u32 = 50;
/// The length of the secret part of an address.
const SECRET_CHARS: usize = 43;

/// The addresses of a feed and a badge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedAddresses {
    /// That of the feed.
    pub feed_url: String,
    /// That of the badge.
    pub badge_url: String,
}

/// What a feed and a badge show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feed {
    /// The monitor.
    pub monitor: Monitor,
    /// The newest runs, newest first.
    pub runs: Vec<Run>,
    /// When the newest run with a change was due. It may be older than `runs`.
    pub last_change: Option<Timestamp>,
}

/// Gives the feed and the badge of a monitor addresses, which replace the former ones. They cannot be read again, since only a hash
/// is stored.
///
/// # Errors
/// [`NotFound`](grabd_domain::Fault::NotFound).
#[tracing::instrument(name = "monitors.open_feed", skip_all)]
pub async fn open_feed(core: &Core, caller: Caller, id: MonitorId) -> Result<FeedAddresses, Error> {
    let secret = random::secret_text();
    let hash = digest::of(&secret);
    if !core.store_for(caller).monitors().set_feed(monitor_of(caller, id), Some(hash)).await? {
        return Err(not_found().into());
    }
    let base = format!("{}/feeds/{secret}", core.public_url());
    Ok(FeedAddresses { feed_url: format!("{base}/feed.atom"), badge_url: format!("{base}/badge.svg") })
}

/// Removes the addresses of the feed and the badge of a monitor.
///
/// # Errors
/// [`NotFound`](grabd_domain::Fault::NotFound).
#[tracing::instrument(name = "monitors.close_feed", skip_all)]
pub async fn close_feed(core: &Core, caller: Caller, id: MonitorId) -> Result<(), Error> {
    match core.store_for(caller).monitors().set_feed(monitor_of(caller, id), None).await? {
        true => Ok(()),
        false => Err(not_found().into()),
    }
}

/// What the feed with this secret in its address shows. `None` if there is none.
///
/// # Errors
/// Internal errors only.
#[tracing::instrument(name = "monitors.find_feed", skip_all)]
pub async fn find_feed(core: &Core, secret: &str) -> Result<Option<Feed>, Error> {
    if secret.len() != SECRET_CHARS {
        return Ok(None);
    }
    let found = core.store.monitors().find_by_feed(digest::of(secret), core.clock.now()).await?;
    let Some(monitor) = found else { return Ok(None) };
    let page = core.store.monitors().list_runs(monitor.id, None, RUNS).await?;
    let runs = page.map(|page| page.runs).unwrap_or_default();
    let last_change = core.store.monitors().last_change(monitor.id).await?;
    Ok(Some(Feed { monitor, runs, last_change }))
}
