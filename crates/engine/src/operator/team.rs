//! The operator's view of one team.

use futures::try_join;
use grabd_domain::Day;
use grabd_domain::credentials::Environment;
use grabd_domain::credits::Balance;
use grabd_domain::ids::TeamId;
use grabd_store::accounts::{Key, Member, Team};
use grabd_store::credits::Holding;
use grabd_store::operator::FailedGrab;

use super::Operator;
use super::{LimitRow, limit_rows};
use crate::billing::MAX_HOLDINGS;
use crate::error::Error;
use crate::service::Core;

/// Failed grabs in the view.
const FAILURES: u32 = 10;
/// Days over which grabs are counted, including today.
const DAYS: u16 = 30;

/// A team with its details.
#[derive(Clone, Debug)]
pub struct TeamDetails {
    /// The team.
    pub team: Team,
    /// Its members and their roles.
    pub members: Vec<Member>,
    /// Spendable credits.
    pub balance: Balance,
    /// Its lots with remaining credits, in spending order.
    pub lots: Vec<Holding>,
    /// Its keys, without their secrets.
    pub keys: Vec<Key>,
    /// Done live grabs of the last 30 days.
    pub done: u64,
    /// Failed live grabs of the last 30 days.
    pub failed: u64,
    /// The latest failed live grabs.
    pub failures: Vec<FailedGrab>,
    /// Its limits.
    pub limits: Vec<LimitRow>,
}

/// The team with this id; `None` when it does not exist.
///
/// # Errors
/// When the database cannot be read.
#[tracing::instrument(name = "operator.find_team", skip_all)]
pub async fn find_team(core: &Core, _: &Operator, id: TeamId) -> Result<Option<TeamDetails>, Error> {
    let (store, now) = (&core.store, core.clock.now());
    let Some(team) = store.accounts().find_team(id).await? else { return Ok(None) };
    let today = Day::of(now);
    let settings = core.settings.limits();
    let read = async {
        try_join!(
            store.accounts().list_members(id),
            store.credits().holdings(id, MAX_HOLDINGS),
            store.credits().lots(id),
            store.accounts().list_keys(id),
            store.grabs().count_ended_by_day(id, today.before(DAYS - 1), today),
            store.operator().list_failed_of_team(id, FAILURES),
            limit_rows(store, id, &settings),
        )
    };
    let (members, lots, all_lots, keys, days, failures, limits) = read.await?;
    let ended = |done| {
        let of = days.iter().filter(|day| day.environment == Environment::Live && day.done == done);
        of.map(|day| day.grabs).sum()
    };
    let (done, failed) = (ended(true), ended(false));
    let balance = Balance::of(&all_lots, now);
    Ok(Some(TeamDetails { team, members, balance, lots, keys, done, failed, failures, limits }))
}
