//! Expires the unused credits of subscriptions at the end of their term. Credits held for open grabs stay until the
//! grabs end, so a grab created before the end can still spend its credit.

use grabd_domain::Timestamp;
use grabd_domain::credits::EntryKind;
use grabd_domain::ids::LotId;
use sea_orm::sea_query::{Expr, ExprTrait, LockType};
use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

use crate::Result;
use crate::areas::Credits;
use crate::credits::ledger::{NewEntry, append};
use crate::database::{Transaction, Tx};
use crate::entities::{lot, team};

const WORK: &str = "lots";

struct ExpireLot {
    lot: LotId,
    now: Timestamp,
}

impl Credits<'_> {
    /// Expires the unheld credits of up to `limit` lots whose term has ended, and returns the number of lots.
    ///
    /// A lot is processed again when a credit that was held at its end is released later. Lots that cannot be processed
    /// are set aside.
    ///
    /// # Errors
    /// Errors of the database as a whole. Lots expired before the error stay expired.
    pub async fn expire_lots(self, now: Timestamp, limit: u32) -> Result<u32> {
        let ended: Vec<i64> = lot::Entity::find()
            .select_only()
            .column(lot::Column::Id)
            .filter(is_expirable(now))
            .filter(lot::Column::Id.is_not_in(self.store.set_aside.keys::<i64>(WORK, now)))
            .order_by_asc(lot::Column::ExpiresAt)
            .limit(u64::from(limit))
            .into_tuple()
            .all(self.store.database.reader())
            .await?;
        let mut expired = 0;
        for lot in ended {
            let outcome = self.store.database.write(ExpireLot { lot: LotId(lot), now }).await;
            let outcome = self.store.set_aside.unless_row_fails(WORK, &lot, now, outcome)?;
            expired += u32::from(outcome.unwrap_or(false));
        }
        Ok(expired)
    }
}

fn is_expirable(now: Timestamp) -> Condition {
    Condition::all()
        .add(lot::Column::ExpiresAt.lte(now.as_ms()))
        .add(Expr::col(lot::Column::Remaining).gt(Expr::col(lot::Column::Held)))
}

impl Transaction for ExpireLot {
    type Outcome = bool;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        let lot = || lot::Entity::find_by_id(self.lot.0);
        let Some(owner) = lot().one(tx).await? else { return Ok(false) };
        // Locks the team whatever its status, so that no create can hold a credit that is about to expire.
        team::Entity::find_by_id(owner.team_id).lock(LockType::NoKeyUpdate).one(tx).await?;
        let expired = lot().filter(is_expirable(self.now)).lock(LockType::Update).one(tx).await?;
        let Some(expired) = expired else { return Ok(false) };
        lot::Entity::update_many()
            .col_expr(lot::Column::Remaining, Expr::col(lot::Column::Held))
            .filter(lot::Column::Id.eq(expired.id))
            .exec(tx)
            .await?;
        let (team, lot, amount) = (expired.team_id, expired.id, expired.held - expired.remaining);
        let entry = NewEntry { team, lot, kind: EntryKind::Expire, amount, grab: None, reference: None };
        append(tx, entry, self.now).await?;
        Ok(true)
    }
}
