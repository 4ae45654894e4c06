//! The credits of open grabs: one is held when a live grab is created, and spent or released when it ends.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use grabd_domain::Timestamp;
use grabd_domain::credits::EntryKind;
use grabd_domain::ids::{LotId, TeamId};
use sea_orm::sea_query::{Expr, ExprTrait, LockType};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, DbBackend, EntityTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait,
    Select,
};
use uuid::Uuid;

use crate::credits::ledger::{NewEntry, append_all};
use crate::database::Tx;
use crate::entities::{job, lot};
use crate::padded::padded;
use crate::{Error, Result};

/// Holds one credit for each team: of the subscription that expires first, then of the oldest prepaid lot. A team that has
/// none is not in the result. The teams must be different ones. Their lots are locked in this order, which must be that of the
/// teams' ids.
pub(crate) async fn hold_credits(tx: &Tx, teams: &[(TeamId, Timestamp)]) -> Result<HashMap<TeamId, LotId>> {
    if teams.is_empty() {
        return Ok(HashMap::new());
    }
    let next = teams.iter().map(|&(team, now)| Expr::from(next_lot(team, now).into_query()));
    let held = lot::Entity::update_many()
        .col_expr(lot::Column::Held, Expr::col(lot::Column::Held).add(1))
        .filter(Expr::col(lot::Column::Id).is_in(next))
        .filter(is_free())
        .exec_with_returning(tx)
        .await?;
    Ok(held.into_iter().map(|lot| (TeamId(lot.team_id), LotId(lot.id))).collect())
}

/// Finds and locks the lot that the team's next credit is taken from.
fn next_lot(team: TeamId, now: Timestamp) -> Select<lot::Entity> {
    let usable = Condition::any().add(lot::Column::ExpiresAt.is_null()).add(lot::Column::ExpiresAt.gt(now.as_ms()));
    lot::Entity::find()
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
}

fn is_free() -> Expr {
    Expr::col(lot::Column::Remaining).gt(Expr::col(lot::Column::Held))
}

/// Spends the held credits of deleted jobs, each at the given time. A unique index on the grab id prevents spending twice.
pub(crate) async fn spend_credits(tx: &Tx, jobs: &[(&job::Model, Timestamp)]) -> Result<()> {
    if jobs.is_empty() {
        return Ok(());
    }
    let mut credits: BTreeMap<(Uuid, i64), i32> = BTreeMap::new();
    for (job, _) in jobs {
        *credits.entry((job.team_id, job.lot_id)).or_default() += 1;
    }
    if credits.len() > 1 {
        lock_lots(tx, lot::Column::Id.is_in(padded(credits.keys().map(|&(_, lot)| lot)))).await?;
    }
    let mut lots: BTreeMap<i32, Vec<i64>> = BTreeMap::new();
    for ((_, lot), credits) in credits {
        lots.entry(credits).or_default().push(lot);
    }
    for (credits, lots) in lots {
        let number = lots.len();
        let spent = lot::Entity::update_many()
            .col_expr(lot::Column::Remaining, Expr::col(lot::Column::Remaining).sub(credits))
            .col_expr(lot::Column::Held, Expr::col(lot::Column::Held).sub(credits))
            .filter(lot::Column::Id.is_in(padded(lots)))
            .exec(tx)
            .await?;
        if usize::try_from(spent.rows_affected) != Ok(number) {
            return Err(Error::Inconsistent("job without its lot"));
        }
    }
    let entries = jobs.iter().map(|&(job, now)| {
        let (team, lot, grab) = (job.team_id, job.lot_id, Some(job.grab_id));
        (NewEntry { team, lot, kind: EntryKind::Spend, amount: -1, grab, reference: None }, now)
    });
    append_all(tx, entries).await
}

/// Locks all lots of teams before several credits of a team are held, since those may be of several lots.
pub(crate) async fn lock_lots_of(tx: &Tx, teams: &BTreeSet<TeamId>) -> Result<()> {
    lock_lots(tx, lot::Column::TeamId.is_in(padded(teams.iter().map(|team| team.0)))).await
}

/// Locks lots in the order of their teams, as creates do. Two transactions that each change several lots could otherwise wait
/// for each other. SQLite has one writer.
async fn lock_lots(tx: &Tx, lots: Expr) -> Result<()> {
    if tx.get_database_backend() == DbBackend::Sqlite {
        return Ok(());
    }
    lot::Entity::find()
        .select_only()
        .column(lot::Column::Id)
        .filter(lots)
        .filter(lot::Column::Remaining.gt(0))
        .order_by_asc(lot::Column::TeamId)
        .order_by_asc(lot::Column::Id)
        .lock(LockType::Update)
        .into_tuple::<i64>()
        .all(tx)
        .await?;
    Ok(())
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
