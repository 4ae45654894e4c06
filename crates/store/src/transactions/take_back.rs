//! Credits that were paid back: what is left of their lot goes, as far as no open grab holds it.

use grabd_domain::Timestamp;
use grabd_domain::credits::EntryKind;
use grabd_domain::ids::LotId;
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Expr, ExprTrait, LockType};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QuerySelect};

use crate::codes::{self, read_count};
use crate::database::{Transaction, Tx};
use crate::entities::{ledger, lot, team};
use crate::{Error, Result, Store};

/// What is to be gone of a lot by now.
#[derive(Clone, Debug)]
pub struct TakeBack {
    /// The payment or decision that the lot came from.
    pub source_ref: String,
    /// What was paid back so far, of what had been paid; as much of the credits that were granted is to be gone.
    pub share: Share,
    /// Under which reference the ledger has it. What was taken under the same one before counts.
    pub reference: String,
    /// When.
    pub now: Timestamp,
}

/// So many parts of so many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Not more than there are.
    pub parts: u64,
    /// Not none.
    pub of: u64,
}

/// What taking back came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenBack {
    /// The lot.
    pub lot: LotId,
    /// Credits that were taken now.
    pub taken: u32,
    /// Credits that should be gone as well, and are spent or held.
    pub missing: u32,
}

impl Share {
    /// That share of a number, rounded down; nothing of a share that cannot be.
    fn of(self, whole: u32) -> u32 {
        let Self { parts, of } = self;
        let share = (u128::from(whole) * u128::from(Ord::min(parts, of))).checked_div(u128::from(of));
        share.and_then(|share| u32::try_from(share).ok()).unwrap_or(0)
    }
}

impl Store {
    /// Takes back what was paid back, once however often it is told; `None` when no lot came from that payment.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn take_back(&self, change: TakeBack) -> Result<Option<TakenBack>> {
        self.database.write(change).await
    }
}

impl Transaction for TakeBack {
    type Outcome = Option<TakenBack>;

    async fn apply(&self, tx: &Tx) -> Result<Option<TakenBack>> {
        let lot = || lot::Entity::find().filter(lot::Column::SourceRef.eq(self.source_ref.as_str()));
        let Some(owner) = lot().one(tx).await? else { return Ok(None) };
        // Whatever its status: the lock keeps creates from holding what is about to go.
        team::Entity::find_by_id(owner.team_id).lock(LockType::NoKeyUpdate).one(tx).await?;
        let row = lot().lock(LockType::Update).one(tx).await?;
        let row = row.ok_or(Error::Inconsistent("a lot that was there is gone"))?;
        let before = self.taken_before(tx, row.id).await?;
        let due = self.share.of(read_count(row.granted)?).saturating_sub(before);
        let taken = Ord::min(due, read_count(row.remaining - row.held)?);
        let outcome = TakenBack { lot: LotId(row.id), taken, missing: due - taken };
        if taken == 0 {
            return Ok(Some(outcome));
        }
        let amount = i32::try_from(taken).map_err(|_| Error::Inconsistent("more credits than a lot holds"))?;
        lot::Entity::update_many()
            .col_expr(lot::Column::Remaining, Expr::col(lot::Column::Remaining).sub(amount))
            .filter(lot::Column::Id.eq(row.id))
            .exec(tx)
            .await?;
        let entry = ledger::ActiveModel {
            team_id: Set(row.team_id),
            lot_id: Set(row.id),
            kind: Set(codes::entry_kind(EntryKind::Adjust)),
            amount: Set(-amount),
            reference: Set(Some(self.reference.clone())),
            at: Set(self.now.as_ms()),
            ..Default::default()
        };
        ledger::Entity::insert(entry).exec_without_returning(tx).await?;
        Ok(Some(outcome))
    }
}

impl TakeBack {
    async fn taken_before(&self, tx: &Tx, lot: i64) -> Result<u32> {
        // A lot has few entries of this kind: one for each time that something of it was paid back.
        let amounts: Vec<i32> = ledger::Entity::find()
            .select_only()
            .column(ledger::Column::Amount)
            .filter(ledger::Column::LotId.eq(lot))
            .filter(ledger::Column::Kind.eq(codes::entry_kind(EntryKind::Adjust)))
            .filter(ledger::Column::Reference.eq(self.reference.as_str()))
            .into_tuple()
            .all(tx)
            .await?;
        read_count(-amounts.iter().sum::<i32>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_rounded_down_and_never_more_than_all() {
        for (parts, of, whole, expected) in [
            (1, 1, 25_000, 25_000),
            (2_500, 5_000, 25_000, 12_500),
            (1, 3, 100, 33),
            (0, 5_000, 25_000, 0),
            (9, 5, 25_000, 25_000),
            (1, 0, 25_000, 0),
            (u64::MAX, u64::MAX, u32::MAX, u32::MAX),
        ] {
            assert_eq!(Share { parts, of }.of(whole), expected, "{parts} of {of} of {whole}");
        }
    }
}
