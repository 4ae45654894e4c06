//! A subscription's rest lapses at its term's end. What is held for open grabs stays until they end: a grab that began
//! before the end can still be paid.

use grabd_domain::Timestamp;
use grabd_domain::credits::EntryKind;
use grabd_domain::ids::LotId;
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Expr, ExprTrait, LockType};
use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

use crate::codes;
use crate::database::{Transaction, Tx};
use crate::entities::{ledger, lot, team};
use crate::{Result, Store};

struct Lapse {
    lot: LotId,
    now: Timestamp,
}

impl Store {
    /// Lets the rests of at most `limit` ended lots lapse, and answers how many lots that were.
    ///
    /// A lot comes up again when a credit that was held at its end is released afterwards.
    ///
    /// # Errors
    /// Of the database; what lapsed before stays so.
    pub async fn expire_lots(&self, now: Timestamp, limit: u32) -> Result<u32> {
        let ended: Vec<i64> = lot::Entity::find()
            .select_only()
            .column(lot::Column::Id)
            .filter(has_lapsed(now))
            .order_by_asc(lot::Column::ExpiresAt)
            .limit(u64::from(limit))
            .into_tuple()
            .all(self.database.reader())
            .await?;
        let mut lapsed = 0;
        for lot in ended {
            lapsed += u32::from(self.database.write(Lapse { lot: LotId(lot), now }).await?);
        }
        Ok(lapsed)
    }
}

fn has_lapsed(now: Timestamp) -> Condition {
    Condition::all()
        .add(lot::Column::ExpiresAt.lte(now.as_ms()))
        .add(Expr::col(lot::Column::Remaining).gt(Expr::col(lot::Column::Held)))
}

impl Transaction for Lapse {
    type Outcome = bool;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        let lot = || lot::Entity::find_by_id(self.lot.0);
        let Some(owner) = lot().one(tx).await? else { return Ok(false) };
        // Whatever its status: the lock keeps creates from holding what is about to lapse.
        team::Entity::find_by_id(owner.team_id).lock(LockType::NoKeyUpdate).one(tx).await?;
        let lapsed = lot().filter(has_lapsed(self.now)).lock(LockType::Update).one(tx).await?;
        let Some(lapsed) = lapsed else { return Ok(false) };
        lot::Entity::update_many()
            .col_expr(lot::Column::Remaining, Expr::col(lot::Column::Held))
            .filter(lot::Column::Id.eq(lapsed.id))
            .exec(tx)
            .await?;
        let entry = ledger::ActiveModel {
            team_id: Set(lapsed.team_id),
            lot_id: Set(lapsed.id),
            kind: Set(codes::entry_kind(EntryKind::Expire)),
            amount: Set(lapsed.held - lapsed.remaining),
            at: Set(self.now.as_ms()),
            ..Default::default()
        };
        ledger::Entity::insert(entry).exec_without_returning(tx).await?;
        Ok(true)
    }
}
