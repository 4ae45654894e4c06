//! All limits of one team, as operators see them.

use std::time::Duration;

use grabd_domain::ids::TeamId;
use grabd_domain::team_limits::TeamLimit;
use grabd_domain::teams::{INVITATIONS, KEYS, MEMBERS};
use grabd_domain::webhooks::MAX_ENDPOINTS;
use grabd_store::{Error, Store};

use crate::admission;
use crate::billing::FREE_REFERENCES;
use crate::limits::INVITATIONS_PER_DAY;
use crate::retention::Retention;

const DAY_S: u64 = 24 * 60 * 60;

/// The settings that apply to teams without an override.
#[derive(Clone, Copy, Debug)]
pub struct LimitSettings {
    /// Requests per minute in one environment.
    pub requests_per_minute: u32,
    /// Open asynchronous grabs.
    pub async_queue: u32,
    /// Budgets of failed renders.
    pub abuse: admission::Settings,
    /// How long and how much is kept.
    pub retention: Retention,
}

/// A limit of a team.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitRow {
    /// The limit.
    pub limit: TeamLimit,
    /// The value in effect.
    pub value: u64,
    /// The value without an override.
    pub setting: u64,
    /// Whether an override is in effect. A budget of failed renders may be that of another team of the account.
    pub is_overridden: bool,
}

impl LimitSettings {
    /// The value of a limit without an override; 0: none, except for limits of numbers of things. Some depend on whether the
    /// account has paid.
    pub fn of(&self, limit: TeamLimit, has_paid: bool) -> u64 {
        let days = |kept: Option<Duration>| kept.map_or(0, |kept| kept.as_secs() / DAY_S);
        match limit {
            TeamLimit::RequestsPerMinute => self.requests_per_minute.into(),
            TeamLimit::AsyncQueue => self.async_queue.into(),
            TeamLimit::FailedSecondsPerMinute => self.abuse.failed_seconds(has_paid).map_or(0, u64::from),
            TeamLimit::TeamMegabytes => self.retention.team_megabytes.unwrap_or(0),
            TeamLimit::ImagesDays => days(self.retention.images),
            TeamLimit::GrabsDays => days(self.retention.grabs),
            TeamLimit::TestGrabsDays => days(self.retention.test_grabs),
            TeamLimit::FailedGrabsDays => days(self.retention.failed_grabs),
            TeamLimit::TestMegabytes => self.retention.test_limit(self.abuse.has_strangers).unwrap_or(0),
            TeamLimit::StoredMegabytes => self.retention.live_limit(self.abuse.has_strangers, has_paid).1.unwrap_or(0),
            TeamLimit::Webhooks => MAX_ENDPOINTS.into(),
            TeamLimit::Keys => KEYS,
            TeamLimit::Members => MEMBERS,
            TeamLimit::Invitations => INVITATIONS,
            TeamLimit::InvitationsPerDay => INVITATIONS_PER_DAY.into(),
        }
    }
}

/// All limits of a team.
///
/// # Errors
/// Database errors only.
pub async fn limit_rows(store: &Store, team: TeamId, settings: &LimitSettings) -> Result<Vec<LimitRow>, Error> {
    let stored = store.limits().team_limits(team).await?;
    let payer = store.credits().payer(team, &FREE_REFERENCES).await?;
    let budget = store.limits().list_payer_budgets().await?.get(&payer.id).copied();
    let row = |limit: TeamLimit| {
        let own = || stored.iter().find(|stored| stored.limit == limit).map(|stored| stored.value);
        let own = if limit == TeamLimit::FailedSecondsPerMinute { budget } else { own() };
        let setting = settings.of(limit, payer.has_paid);
        LimitRow { limit, value: own.map_or(setting, u64::from), setting, is_overridden: own.is_some() }
    };
    Ok(TeamLimit::ALL.into_iter().map(row).collect())
}
