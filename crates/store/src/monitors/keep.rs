//! Deletes runs beyond those that a monitor keeps.

use grabd_domain::monitor::RunOutcome;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use super::held::Held;
use crate::Result;
use crate::database::Tx;
use crate::entities::monitor_run;
use crate::padded::padded;

/// The most that are deleted at a time. Usually it is one.
const RUNS_DELETED: u64 = 100;

/// Deletes runs that have ended, except the newest ones, and those whose alerts are not sent yet.
pub(super) async fn delete_old_runs(tx: &Tx, monitor: Uuid, keep: u32, held: Held) -> Result<()> {
    let old: Vec<Uuid> = monitor_run::Entity::find()
        .select_only()
        .column(monitor_run::Column::Id)
        .filter(monitor_run::Column::MonitorId.eq(monitor))
        .filter(monitor_run::Column::Outcome.ne(monitor_run::outcome(RunOutcome::Running)))
        .order_by_desc(monitor_run::Column::DueAt)
        .offset(u64::from(keep))
        .limit(RUNS_DELETED)
        .into_tuple()
        .all(tx)
        .await?;
    let old: Vec<Uuid> = old.into_iter().filter(|run| !held.has(*run)).collect();
    if !old.is_empty() {
        monitor_run::Entity::delete_many().filter(monitor_run::Column::Id.is_in(padded(old))).exec(tx).await?;
    }
    Ok(())
}
