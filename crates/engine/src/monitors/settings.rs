//! Limits of monitors, and what wakes the scheduler.

use std::time::Duration;

use grabd_domain::ids::TeamId;
use grabd_domain::monitor::{KEPT_PER_MONITOR, MAX_MONITORS};
use grabd_limiters::KeyedLimiter;
use tokio::sync::Notify;

/// Limits of monitors, as the operator sets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MonitorLimits {
    /// How many monitors a team may have in each environment.
    pub per_team: u32,
    /// The shortest time between two runs.
    pub shortest: Duration,
}

impl MonitorLimits {
    /// How many runs all monitors of a team in an environment may keep together.
    pub(super) fn kept_runs(&self) -> u64 {
        u64::from(self.per_team) * u64::from(KEPT_PER_MONITOR)
    }
}

impl Default for MonitorLimits {
    fn default() -> Self {
        Self { per_team: MAX_MONITORS, shortest: Duration::from_secs(5 * 60) }
    }
}

/// Alerts by mail per team and hour, so that monitors of one team do not delay the mail of others.
const MAILS_PER_HOUR: u32 = 20;

/// State shared by the use-cases and the scheduler.
pub(crate) struct Monitors {
    /// Notified when a monitor may be due. Notifications may be lost, since the scheduler also polls.
    wakeup: Notify,
    mails: KeyedLimiter<TeamId>,
}

impl Default for Monitors {
    fn default() -> Self {
        Self { wakeup: Notify::new(), mails: KeyedLimiter::per_hour(MAILS_PER_HOUR) }
    }
}

impl Monitors {
    /// Notifies the scheduler that a monitor may be due.
    pub(super) fn notify(&self) {
        self.wakeup.notify_one();
    }

    /// Waits for a notification.
    pub(super) async fn notified(&self) {
        self.wakeup.notified().await;
    }

    /// Takes one alert by mail from the limit of a team.
    pub(super) fn may_mail(&self, team: TeamId) -> bool {
        self.mails.take(&team).is_ok()
    }
}
