//! Limits of site jobs, and what wakes the scheduler.

use std::sync::Arc;

use grabd_domain::ids::TeamId;
use grabd_domain::site::{MAX_PAGES, OPEN_SITES};
use grabd_limiters::KeyedLimiter;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use super::robots_cache::RobotsCache;

/// Limits of site jobs, as the operator sets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SiteLimits {
    /// How many open jobs a team may have in each environment.
    pub open_per_team: u32,
    /// The largest number of pages that a job may capture.
    pub max_pages: u32,
    /// Whether a job may ignore the robots.txt of a site.
    pub ignore_robots: bool,
}

impl Default for SiteLimits {
    fn default() -> Self {
        Self { open_per_team: OPEN_SITES, max_pages: MAX_PAGES, ignore_robots: false }
    }
}

/// Mails about jobs per team and hour, so that jobs of one team do not delay the mail of others.
const MAILS_PER_HOUR: u32 = 20;
/// Jobs that are worked on at the same time. Most of a step waits for the site or the resolver.
const TURNS: usize = 16;

/// State shared by the use-cases and the scheduler.
pub(crate) struct Sites {
    /// Notified when a job may be due. Notifications may be lost, since the scheduler also polls.
    wakeup: Notify,
    mails: KeyedLimiter<TeamId>,
    /// A permit for each job that is being worked on.
    turns: Arc<Semaphore>,
    /// The robots.txt of hosts.
    pub(super) robots: RobotsCache,
}

impl Default for Sites {
    fn default() -> Self {
        Self {
            wakeup: Notify::new(),
            mails: KeyedLimiter::per_hour(MAILS_PER_HOUR),
            turns: Arc::new(Semaphore::new(TURNS)),
            robots: RobotsCache::default(),
        }
    }
}

impl Sites {
    /// Notifies the scheduler that a job may be due.
    pub(super) fn notify(&self) {
        self.wakeup.notify_one();
    }

    /// Waits for a notification.
    pub(super) async fn notified(&self) {
        self.wakeup.notified().await;
    }

    /// How many further jobs may be worked on now.
    pub(super) fn free_turns(&self) -> u32 {
        u32::try_from(self.turns.available_permits()).unwrap_or(u32::MAX)
    }

    /// The permit to work on a job, until it is dropped. `None` if too many are being worked on.
    pub(super) fn turn_permit(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.turns).try_acquire_owned().ok()
    }

    /// Takes one mail from the limit of a team.
    pub(super) fn may_mail(&self, team: TeamId) -> bool {
        self.mails.take(&team).is_ok()
    }
}
