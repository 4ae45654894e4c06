//! The credits of open grabs: one is held when a live grab is created, and spent or released when it ends.

use grabd_domain::Timestamp;
use grabd_domain::credits::EntryKind;
use grabd_domain::ids::{LotId, TeamId};
use sea_orm::sea_query::{Expr, ExprTrait, LockType};
use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait};

use crate::credits::ledger::{NewEntry, append};
use crate::database::Tx;
use crate::entities::{job, lot};
use crate::{Error, Result};

/// Holds one credit: of the subscription that expires first, then of the oldest prepaid lot. `None` if there is none.
pub(crate) async fn hold_credit(tx: &Tx, team: TeamId, now: Timestamp) -> Result<Option<LotId>> {
    let is_free = || Expr::col(lot::Column::Remaining).gt(Expr::col(lot::Column::Held));
    let usable = Condition::any().add(lot::Column::ExpiresAt.is_null()).add(lot::Column::ExpiresAt.gt(now.as_ms()));
    let next = lot::Entity::find()
        .select_only()
        .column(lot::Column::Id)
        .filter(lot::Column::TeamId.eq(team.0))
        .filter(is_free())
        .filter(usable)
        .order_by_asc(lot::Column::Kind)
        .order_by_asc(lot::Column::ExpiresAt)
        .order_by_asc(lot::Column::Id)
        .limit(1)
        .lock(LockType::Update)
        .into_query();
    let held = lot::Entity::update_many()
        .col_expr(lot::Column::Held, Expr::col(lot::Column::Held).add(1))
        .filter(Expr::col(lot::Column::Id).eq(Expr::from(next)))
        .filter(is_free())
        .exec_with_returning(tx)
        .await?;
    Ok(held.first().map(|lot| LotId(lot.id)))
}

/// Spends the held credit of a deleted job. A unique index on the grab id prevents spending twice.
pub(crate) async fn spend_credit(tx: &Tx, job: &job::Model, now: Timestamp) -> Result<()> {
    let spent = lot::Entity::update_many()
        .col_expr(lot::Column::Remaining, Expr::col(lot::Column::Remaining).sub(1))
        .col_expr(lot::Column::Held, Expr::col(lot::Column::Held).sub(1))
        .filter(lot::Column::Id.eq(job.lot_id))
        .exec(tx)
        .await?;
    if spent.rows_affected != 1 {
        return Err(Error::Inconsistent("job without its lot"));
    }
    let (team, lot, grab) = (job.team_id, job.lot_id, Some(job.grab_id));
    append(tx, NewEntry { team, lot, kind: EntryKind::Spend, amount: -1, grab, reference: None }, now).await
}

/// Releases the held credit of a deleted job.
pub(crate) async fn release_credit(tx: &Tx, job: &job::Model) -> Result<()> {
    let released = lot::Entity::update_many()
        .col_expr(lot::Column::Held, Expr::col(lot::Column::Held).sub(1))
        .filter(lot::Column::Id.eq(job.lot_id))
        .exec(tx)
        .await?;
    match released.rows_affected {
        1 => Ok(()),
        _ => Err(Error::Inconsistent("job without its lot")),
    }
}
