//! Streams the states of one job.

use std::time::Duration;

use futures::Stream;
use grabd_domain::credentials::Caller;
use grabd_domain::ids::SiteId;
use grabd_domain::site::Site;
use tokio::time::{Instant, sleep_until};

use super::manage::get;
use crate::service::Core;

/// The pause before the next read after a change. Each further one is twice as long.
const SHORTEST_PAUSE: Duration = Duration::from_secs(2);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(8);
/// Maximum duration of one stream; clients resume with another.
const MAX_DURATION: Duration = Duration::from_secs(15 * 60);

struct Watch {
    core: Core,
    caller: Caller,
    site: SiteId,
    /// What was sent last.
    last: Option<Site>,
    pause: Duration,
    until: Instant,
}

/// Streams the current state of a job and each later one that is found, until the job has ended. It also ends when the caller has no
/// such job any more, when it has lasted long enough, and when the core drains.
pub fn watch(core: &Core, caller: Caller, site: SiteId) -> impl Stream<Item = Site> + Send + 'static + use<> {
    let until = Instant::now() + MAX_DURATION;
    let watch = Watch { core: core.clone(), caller, site, last: None, pause: SHORTEST_PAUSE, until };
    futures::stream::unfold(watch, step)
}

async fn step(mut watch: Watch) -> Option<(Site, Watch)> {
    let site = watch.next().await?;
    Some((site, watch))
}

impl Watch {
    async fn next(&mut self) -> Option<Site> {
        if self.last.as_ref().is_some_and(|last| last.finished_at.is_some()) {
            return None;
        }
        loop {
            if self.last.is_some() {
                tokio::select! {
                    () = sleep_until(Instant::now() + self.pause) => {}
                    () = self.core.draining.cancelled() => return None,
                }
                if Instant::now() >= self.until {
                    return None;
                }
            }
            let site = get(&self.core, self.caller, self.site).await.ok()?;
            if self.last.as_ref() != Some(&site) {
                self.pause = SHORTEST_PAUSE;
                self.last = Some(site.clone());
                return Some(site);
            }
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        }
    }
}
