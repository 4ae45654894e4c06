//! How many bytes a payer may store.
//!
//! The bytes of the team that creates a grab are compared in the transaction of the create. Those of the other teams of its
//! payer are read a few seconds before, so that creates need no query for them.

use grabd_domain::Fault;
use grabd_domain::admission::Payer;
use grabd_domain::credentials::{Caller, Environment};
use grabd_domain::ids::TeamId;
use grabd_domain::storage::{Counted, StorageCeiling};
use grabd_domain::team_limits::TeamLimit;

use crate::billing::FREE_REFERENCES;
use crate::error::Error;
use crate::service::Core;

const MEGABYTE: u64 = 1_000_000;
/// With how many bytes the caller may create no more, whatever its environment. `None`: any number.
///
/// # Errors
/// When the database cannot be read.
pub(crate) async fn ceiling_of(core: &Core, caller: Caller) -> Result<Option<StorageCeiling>, Error> {
    match caller.environment {
        Environment::Test => {
            let bytes = test_ceiling(core, caller.team).await?;
            Ok(bytes.map(|bytes| StorageCeiling { counted: Counted::Test, bytes }))
        }
        Environment::Live => {
            let payer = core.store.credits().payer(caller.team, &FREE_REFERENCES).await;
            live_ceiling(core, caller.team, payer?).await
        }
    }
}

/// With how many bytes of test grabs a team may create no more. `None`: any number.
///
/// # Errors
/// When the database cannot be read.
pub(crate) async fn test_ceiling(core: &Core, team: TeamId) -> Result<Option<i64>, Error> {
    let limit = core.settings.retention.test_limit(core.settings.abuse.has_strangers);
    let limit = own_or(core, team, TeamLimit::TestMegabytes, limit);
    Ok(ceiling(core, team, Counted::Test, limit).await?.map(|ceiling| ceiling.bytes))
}

/// With how many bytes of live grabs a team may create no more. `None`: any number.
///
/// # Errors
/// When the database cannot be read.
pub(crate) async fn live_ceiling(core: &Core, team: TeamId, payer: Payer) -> Result<Option<StorageCeiling>, Error> {
    let (counted, limit) = core.settings.retention.live_limit(core.settings.abuse.has_strangers, payer.has_paid);
    ceiling(core, team, counted, own_or(core, team, TeamLimit::StoredMegabytes, limit)).await
}

/// The fault of a create of a team that has reached this ceiling.
pub(crate) async fn refuse(core: &Core, team: TeamId, ceiling: StorageCeiling) -> Error {
    core.metrics.admission_refused("storage");
    // Read again the next time: what the other teams store may be less by then.
    let others = core.grabs.budgets.take(team);
    let stored = match core.store.grabs().storage_of_team(team).await {
        Ok(stored) => stored,
        Err(error) => return error.into(),
    };
    let megabytes = |bytes: i64| u64::try_from(bytes).unwrap_or(0).div_ceil(MEGABYTE);
    let full = Fault::AccountStorageFull {
        counted: ceiling.counted,
        stored_megabytes: megabytes(stored.counted(ceiling.counted).saturating_add(others.counted(ceiling.counted))),
        limit_megabytes: megabytes(ceiling.bytes.saturating_add(others.counted(ceiling.counted))),
    };
    full.into()
}

/// The limit of the team, in megabytes, or that of the settings.
fn own_or(core: &Core, team: TeamId, limit: TeamLimit, setting: Option<u64>) -> Option<u64> {
    match core.limits.of(team, limit) {
        Some(own) => Some(own.into()).filter(|own| *own > 0),
        None => setting,
    }
}

async fn ceiling(
    core: &Core,
    team: TeamId,
    counted: Counted,
    limit_megabytes: Option<u64>,
) -> Result<Option<StorageCeiling>, Error> {
    let Some(limit) = limit_megabytes else { return Ok(None) };
    let limit = i64::try_from(limit.saturating_mul(MEGABYTE)).unwrap_or(i64::MAX);
    let others = match core.grabs.budgets.get(team) {
        Some(others) => others,
        None => {
            let others = core.store.grabs().storage_of_others(team).await?;
            core.grabs.budgets.put(team, others);
            others
        }
    };
    Ok(Some(StorageCeiling::beside(&others, counted, limit)))
}
