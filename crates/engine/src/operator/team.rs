//! One team, as far as it is an operator's business.

use futures::try_join;
use grabd_domain::credentials::Environment;
use grabd_domain::credits::Balance;
use grabd_domain::ids::TeamId;
use grabd_domain::{Day, Fault};
use grabd_store::{Failed, Holding, Key, Member, Team};

use super::Operator;
use crate::billing::MAX_HOLDINGS;
use crate::core::{Core, inside};

/// Failures that are shown.
const FAILURES: u32 = 10;
/// Days over which captures are counted, today included.
const DAYS: u16 = 30;

/// A team with all that is shown of it.
#[derive(Clone, Debug)]
pub struct OneTeam {
    /// The team.
    pub team: Team,
    /// Who is in it, and as what.
    pub members: Vec<Member>,
    /// What it can spend.
    pub balance: Balance,
    /// Its lots that have something left, in the order they are spent.
    pub lots: Vec<Holding>,
    /// Its keys, without their secrets.
    pub keys: Vec<Key>,
    /// Live grabs of the last thirty days that are done.
    pub done: u64,
    /// Live grabs of the last thirty days that failed.
    pub failed: u64,
    /// The last live grabs that failed.
    pub failures: Vec<Failed>,
}

/// The team with this id; `None` when there is none.
///
/// # Errors
/// [`Fault::InternalError`] when the database cannot be read.
pub async fn find_team(core: &Core, _: &Operator, id: TeamId) -> Result<Option<OneTeam>, Fault> {
    let step = "operator.find_team";
    let (store, now) = (&core.store, core.clock.now());
    let Some(team) = store.find_team(id).await.map_err(inside(step))? else { return Ok(None) };
    let today = Day::of(now);
    let read = async {
        try_join!(
            store.list_members(id),
            store.holdings(id, MAX_HOLDINGS),
            store.lots(id),
            store.list_keys(id),
            store.count_ended_by_day(id, today.before(DAYS - 1), today),
            store.list_failed_of(id, FAILURES),
        )
    };
    let (members, lots, all_lots, keys, days, failures) = read.await.map_err(inside(step))?;
    let ended = |done| {
        let of = days.iter().filter(|day| day.environment == Environment::Live && day.done == done);
        of.map(|day| day.grabs).sum()
    };
    let (done, failed) = (ended(true), ended(false));
    let balance = Balance::of(&all_lots, now);
    Ok(Some(OneTeam { team, members, balance, lots, keys, done, failed, failures }))
}
