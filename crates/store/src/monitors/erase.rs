//! Stops and erases the monitors of a deleted team.

use grabd_domain::ids::TeamId;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QuerySelect, QueryTrait};
use uuid::Uuid;

use crate::Result;
use crate::database::Tx;
use crate::entities::{monitor, monitor_run};

/// Removes the due times of the team's monitors and the alerts of their quiet hours, so that they make no more runs and send
/// nothing.
pub(crate) async fn stop_monitors(tx: &Tx, team: TeamId) -> Result<()> {
    monitor::Entity::update_many()
        .col_expr(monitor::Column::NextRunAt, Expr::value(Option::<i64>::None))
        .col_expr(monitor::Column::FeedHash, Expr::value(Option::<Vec<u8>>::None))
        .col_expr(monitor::Column::HeldUntil, Expr::value(Option::<i64>::None))
        .col_expr(monitor::Column::HeldChangeId, Expr::value(Option::<Uuid>::None))
        .col_expr(monitor::Column::HeldFailureId, Expr::value(Option::<Uuid>::None))
        .filter(monitor::Column::TeamId.eq(team.0))
        .exec(tx)
        .await?;
    Ok(())
}

/// Deletes up to `limit` runs of the team's monitors, and the monitors that have none left. Returns whether something is left.
pub(crate) async fn erase_monitors(tx: &Tx, team: TeamId, limit: u32) -> Result<bool> {
    let monitors: Vec<Uuid> = monitor::Entity::find()
        .select_only()
        .column(monitor::Column::Id)
        .filter(monitor::Column::TeamId.eq(team.0))
        .into_tuple()
        .all(tx)
        .await?;
    let mut left = u64::from(limit);
    for monitor in monitors {
        let some = monitor_run::Entity::find()
            .select_only()
            .column(monitor_run::Column::Id)
            .filter(monitor_run::Column::MonitorId.eq(monitor))
            .limit(left)
            .into_query();
        let deleted = monitor_run::Entity::delete_many().filter(monitor_run::Column::Id.in_subquery(some));
        left -= deleted.exec(tx).await?.rows_affected.min(left);
        if left == 0 {
            return Ok(true);
        }
        monitor::Entity::delete_by_id(monitor).exec(tx).await?;
    }
    Ok(false)
}
