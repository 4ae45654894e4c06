//! Takes back the credits of refunded and disputed payments, as far as they are neither spent nor held, and gives them
//! back when a dispute is won.
//!
//! Stripe does not guarantee the order of its events, so a refund or a dispute is remembered whether or not its payment
//! has been granted, and applied to the lot by the same function in either order.

use grabd_domain::Timestamp;
use grabd_domain::credits::{DisputeState, EntryKind};
use grabd_domain::ids::{LotId, TeamId};
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Expr, ExprTrait, LockType, OnConflict, Query};
use sea_orm::{ColumnTrait, ConnectionTrait, DbBackend, EntityTrait, QueryFilter, QueryOrder, QuerySelect, Statement};

use crate::actor::Actor;
use crate::areas::Credits;
use crate::audit::AuditEvent;
use crate::codes::{self, read_count};
use crate::credits::grant::{Grant, GrantOutcome};
use crate::credits::ledger::{NewEntry, append};
use crate::database::{Transaction, Tx};
use crate::entities::{ledger, lot, payment_reversal, team};
use crate::{Error, Result};

/// Maximum number of refunds and disputes of one payment. Refunds have one together, and disputes are few.
const MAX_REVERSALS: u64 = 20;
/// The actor of the audit trail's entries: payments are reversed by events of the payment provider.
const ACTOR: &str = grabd_domain::audit::PAYMENTS_ACTOR;

/// The total share of a lot to take back.
#[derive(Clone, Debug)]
pub struct Clawback {
    /// Reference of the payment or decision that the lot came from.
    pub source_ref: String,
    /// The share of the payment that was refunded so far. The same share of the granted credits is taken back.
    pub share: Share,
    /// Reference of the ledger entry. Credits taken back under the same reference before are counted.
    pub reference: String,
    /// Current time.
    pub now: Timestamp,
}

/// A fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Numerator, at most `of`.
    pub parts: u64,
    /// Denominator, not zero.
    pub of: u64,
}

/// A change of the state of a dispute.
#[derive(Clone, Debug)]
pub struct Dispute {
    /// Reference of the disputed payment.
    pub source_ref: String,
    /// Reference of the ledger entries, different for each dispute.
    pub reference: String,
    /// The new state. A closed dispute stays as it is.
    pub state: DisputeState,
    /// Current time.
    pub now: Timestamp,
}

/// A purchase to grant. Refunds and disputes that were reported before it are applied at once.
#[derive(Clone, Debug)]
pub struct Purchase(pub Grant);

/// Outcome of taking back or giving back credits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClawbackOutcome {
    /// The lot.
    pub lot: LotId,
    /// Its team.
    pub team: TeamId,
    /// Credits taken back by this call.
    pub taken: u32,
    /// Credits given back by this call.
    pub restored: u32,
    /// Credits that could not be taken back because they are spent or held.
    pub missing: u32,
}

impl Share {
    /// This share of `whole`, rounded down. 0 for an invalid share.
    fn of(self, whole: u32) -> u32 {
        let Self { parts, of } = self;
        let share = (u128::from(whole) * u128::from(Ord::min(parts, of))).checked_div(u128::from(of));
        share.and_then(|share| u32::try_from(share).ok()).unwrap_or(0)
    }
}

impl Credits<'_> {
    /// Takes back the refunded credits. Idempotent. `None` when no lot came from that payment; the refund is then
    /// applied when the payment is granted.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn claw_back(self, change: Clawback) -> Result<Option<ClawbackOutcome>> {
        self.store.database.write(change).await
    }

    /// Takes back the credits of a disputed payment, or gives them back. Idempotent. `None` when no lot came from that
    /// payment; the dispute is then applied when the payment is granted.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn dispute(self, change: Dispute) -> Result<Option<ClawbackOutcome>> {
        self.store.database.write(change).await
    }

    /// Grants a purchase, once for each `source_ref`, and applies its refunds and disputes. The second value is `None`
    /// when there are none.
    ///
    /// # Errors
    /// As for [`Credits::grant`](crate::areas::Credits::grant).
    pub async fn grant_purchase(self, purchase: Purchase) -> Result<(GrantOutcome, Option<ClawbackOutcome>)> {
        self.store.database.write(purchase).await
    }

    /// Takes back credits of disputed payments that were held when the dispute was opened and have been released since,
    /// of up to `limit` lots. Returns the number of lots.
    ///
    /// # Errors
    /// Database errors. Lots processed before the error stay processed.
    pub async fn settle_disputes(self, now: Timestamp, limit: u32) -> Result<u32> {
        let in_force = Query::select()
            .column(payment_reversal::Column::SourceRef)
            .from(payment_reversal::Entity)
            .and_where(payment_reversal::Column::Kind.eq(codes::DISPUTE))
            .and_where(payment_reversal::Column::State.ne(codes::dispute(DisputeState::Won)))
            .take();
        let lots: Vec<String> = lot::Entity::find()
            .select_only()
            .column(lot::Column::SourceRef)
            .filter(lot::Column::SourceRef.in_subquery(in_force))
            .filter(Expr::col(lot::Column::Remaining).gt(Expr::col(lot::Column::Held)))
            .limit(u64::from(limit))
            .into_tuple()
            .all(self.store.database.reader())
            .await?;
        let mut settled = 0;
        for source_ref in lots {
            settled += u32::from(self.store.database.write(Settle { source_ref, now }).await?);
        }
        Ok(settled)
    }

    /// Deletes up to `limit` refunds and disputes that were reported before a time and have no lot, such as those of
    /// sales by other services. Returns their number.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn purge_reversals(self, before: Timestamp, limit: u32) -> Result<u64> {
        self.store.database.write(PurgeReversals { before, limit: limit.into() }).await
    }
}

impl Transaction for Clawback {
    type Outcome = Option<ClawbackOutcome>;

    async fn apply(&self, tx: &Tx) -> Result<Option<ClawbackOutcome>> {
        let Self { source_ref, share, reference, now } = self;
        lock_payment(tx, source_ref).await?;
        let known = find(tx, source_ref, reference).await?;
        let (parts, whole) = (stored(share.parts), stored(share.of));
        // Events may arrive out of order: the largest amount refunded so far counts.
        let is_news = known.is_none_or(|known| known.parts < parts);
        if is_news {
            let row = row(source_ref, reference, codes::REFUND, *now);
            let row = payment_reversal::ActiveModel { parts: Set(parts), whole: Set(whole), ..row };
            remember(tx, row, &[payment_reversal::Column::Parts, payment_reversal::Column::Whole]).await?;
        }
        let settled = settle(tx, source_ref, *now).await?;
        if let (true, Some(outcome)) = (is_news, settled) {
            record(tx, "payment.refunded", source_ref, outcome, *now).await?;
        }
        Ok(settled)
    }
}

impl Transaction for Dispute {
    type Outcome = Option<ClawbackOutcome>;

    async fn apply(&self, tx: &Tx) -> Result<Option<ClawbackOutcome>> {
        let Self { source_ref, reference, state, now } = self;
        lock_payment(tx, source_ref).await?;
        let is_news = match find(tx, source_ref, reference).await? {
            None => true,
            // A late `created` event does not reopen a dispute.
            Some(known) => known.state == codes::dispute(DisputeState::Open) && *state != DisputeState::Open,
        };
        if is_news {
            let row = row(source_ref, reference, codes::DISPUTE, *now);
            let row = payment_reversal::ActiveModel { state: Set(codes::dispute(*state)), ..row };
            remember(tx, row, &[payment_reversal::Column::State]).await?;
        }
        let settled = settle(tx, source_ref, *now).await?;
        if let (true, Some(outcome)) = (is_news, settled) {
            let action = match state {
                DisputeState::Open => "payment.disputed",
                DisputeState::Won => "payment.dispute_won",
                DisputeState::Lost => "payment.dispute_lost",
            };
            record(tx, action, source_ref, outcome, *now).await?;
        }
        Ok(settled)
    }
}

impl Transaction for Purchase {
    type Outcome = (GrantOutcome, Option<ClawbackOutcome>);

    async fn apply(&self, tx: &Tx) -> Result<Self::Outcome> {
        let Self(grant) = self;
        lock_payment(tx, &grant.source_ref).await?;
        let granted = grant.apply(tx).await?;
        let reversed = payment_reversal::Entity::find()
            .filter(payment_reversal::Column::SourceRef.eq(grant.source_ref.as_str()))
            .one(tx)
            .await?;
        if reversed.is_none() {
            return Ok((granted, None));
        }
        let settled = settle(tx, &grant.source_ref, grant.now).await?;
        if let (GrantOutcome::New(_), Some(outcome)) = (granted, settled) {
            record(tx, "payment.granted_after_reversal", &grant.source_ref, outcome, grant.now).await?;
        }
        Ok((granted, settled))
    }
}

struct Settle {
    source_ref: String,
    now: Timestamp,
}

impl Transaction for Settle {
    type Outcome = bool;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        lock_payment(tx, &self.source_ref).await?;
        Ok(settle(tx, &self.source_ref, self.now).await?.is_some_and(|outcome| outcome.taken > 0))
    }
}

/// Serializes the events of one payment. Without it, a refund and the grant that run at the same time would not see
/// each other on PostgreSQL. SQLite has one writer.
async fn lock_payment(tx: &Tx, source_ref: &str) -> Result<()> {
    if tx.get_database_backend() == DbBackend::Postgres {
        let lock = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))";
        tx.execute_raw(Statement::from_sql_and_values(DbBackend::Postgres, lock, [source_ref.into()])).await?;
    }
    Ok(())
}

/// The stored form of an amount of cents.
fn stored(cents: u64) -> i64 {
    i64::try_from(cents).unwrap_or(i64::MAX)
}

async fn find(tx: &Tx, source_ref: &str, reference: &str) -> Result<Option<payment_reversal::Model>> {
    Ok(payment_reversal::Entity::find_by_id((source_ref.to_owned(), reference.to_owned())).one(tx).await?)
}

fn row(source_ref: &str, reference: &str, kind: i16, now: Timestamp) -> payment_reversal::ActiveModel {
    payment_reversal::ActiveModel {
        source_ref: Set(source_ref.to_owned()),
        reference: Set(reference.to_owned()),
        kind: Set(kind),
        parts: Set(0),
        whole: Set(0),
        state: Set(codes::dispute(DisputeState::Open)),
        created_at: Set(now.as_ms()),
    }
}

async fn remember(tx: &Tx, row: payment_reversal::ActiveModel, updated: &[payment_reversal::Column]) -> Result<()> {
    let key = [payment_reversal::Column::SourceRef, payment_reversal::Column::Reference];
    let on_conflict = OnConflict::columns(key).update_columns(updated.iter().copied()).to_owned();
    payment_reversal::Entity::insert(row).on_conflict(on_conflict).exec_without_returning(tx).await?;
    Ok(())
}

async fn record(
    tx: &Tx,
    action: &'static str,
    source_ref: &str,
    outcome: ClawbackOutcome,
    now: Timestamp,
) -> Result<()> {
    let ClawbackOutcome { lot, team, taken, restored, missing } = outcome;
    let detail = format!("lot {}: taken back {taken}, given back {restored}, missing {missing}", lot.0);
    let actor = Actor { name: ACTOR.to_owned(), address: None, now };
    AuditEvent::new(action, &source_ref, Some(team)).with(&detail).record(tx, &actor).await
}

/// Brings the lot of a payment in line with its refunds and disputes. `None` when there is no lot.
async fn settle(tx: &Tx, source_ref: &str, now: Timestamp) -> Result<Option<ClawbackOutcome>> {
    let lot = || lot::Entity::find().filter(lot::Column::SourceRef.eq(source_ref));
    let Some(owner) = lot().one(tx).await? else { return Ok(None) };
    // Locks the team whatever its status, so that no create can hold a credit that is about to be taken back.
    team::Entity::find_by_id(owner.team_id).lock(LockType::NoKeyUpdate).one(tx).await?;
    let lot = lot().lock(LockType::Update).one(tx).await?.ok_or(Error::Inconsistent("lot disappeared"))?;
    let reversals = payment_reversal::Entity::find()
        .filter(payment_reversal::Column::SourceRef.eq(source_ref))
        .order_by_asc(payment_reversal::Column::CreatedAt)
        .order_by_asc(payment_reversal::Column::Reference)
        .limit(MAX_REVERSALS)
        .all(tx)
        .await?;
    let granted = read_count(lot.granted)?;
    let mut free = read_count(lot.remaining - lot.held)?;
    let mut outcome =
        ClawbackOutcome { lot: LotId(lot.id), team: TeamId(lot.team_id), taken: 0, restored: 0, missing: 0 };
    // Credits missing before: all of them, less those that were taken back.
    let mut taken_back = 0;
    let is = |kind, state: fn(i16) -> bool| {
        let of_kind = reversals.iter().filter(move |reversal| reversal.kind == kind && state(reversal.state));
        of_kind.map(|reversal| (reversal, reversal.reference.as_str())).collect::<Vec<_>>()
    };
    // First what is given back, since a refund may take it again.
    for (_, reference) in is(codes::DISPUTE, |state| state == codes::dispute(DisputeState::Won)) {
        let back = taken_before(tx, lot.id, reference).await?;
        adjust(tx, &lot, i64::from(back), reference, now).await?;
        free += back;
        outcome.restored += back;
    }
    for (refund, reference) in is(codes::REFUND, |_| true) {
        let share = Share { parts: refund.parts.unsigned_abs(), of: refund.whole.unsigned_abs() };
        let before = taken_before(tx, lot.id, reference).await?;
        let due = share.of(granted).saturating_sub(before);
        let taken = Ord::min(due, free);
        adjust(tx, &lot, -i64::from(taken), reference, now).await?;
        free -= taken;
        taken_back += before + taken;
        outcome.taken += taken;
        outcome.missing += due - taken;
    }
    let in_force = is(codes::DISPUTE, |state| state != codes::dispute(DisputeState::Won));
    for (_, reference) in &in_force {
        let before = taken_before(tx, lot.id, reference).await?;
        adjust(tx, &lot, -i64::from(free), reference, now).await?;
        taken_back += before + free;
        outcome.taken += free;
        free = 0;
    }
    if !in_force.is_empty() {
        outcome.missing = granted.saturating_sub(taken_back);
    }
    Ok(Some(outcome))
}

/// Changes the remaining credits of a lot, with an entry in the ledger. Does nothing for 0 credits.
async fn adjust(tx: &Tx, lot: &lot::Model, credits: i64, reference: &str, now: Timestamp) -> Result<()> {
    if credits == 0 {
        return Ok(());
    }
    let amount = i32::try_from(credits).map_err(|_| Error::Inconsistent("more credits than a lot can hold"))?;
    lot::Entity::update_many()
        .col_expr(lot::Column::Remaining, Expr::col(lot::Column::Remaining).add(amount))
        .filter(lot::Column::Id.eq(lot.id))
        .exec(tx)
        .await?;
    let (team, reference) = (lot.team_id, Some(reference));
    append(tx, NewEntry { team, lot: lot.id, kind: EntryKind::Adjust, amount, grab: None, reference }, now).await
}

/// Credits that were taken back under a reference, less those that were given back.
async fn taken_before(tx: &Tx, lot: i64, reference: &str) -> Result<u32> {
    // There are few: one entry per refund.
    let amounts: Vec<i32> = ledger::Entity::find()
        .select_only()
        .column(ledger::Column::Amount)
        .filter(ledger::Column::LotId.eq(lot))
        .filter(ledger::Column::Kind.eq(codes::entry_kind(EntryKind::Adjust)))
        .filter(ledger::Column::Reference.eq(reference))
        .into_tuple()
        .all(tx)
        .await?;
    read_count(-amounts.iter().sum::<i32>())
}

struct PurgeReversals {
    before: Timestamp,
    limit: u64,
}

impl Transaction for PurgeReversals {
    type Outcome = u64;

    async fn apply(&self, tx: &Tx) -> Result<u64> {
        let lots = Query::select().column(lot::Column::SourceRef).from(lot::Entity).take();
        let old: Vec<(String, String)> = payment_reversal::Entity::find()
            .select_only()
            .columns([payment_reversal::Column::SourceRef, payment_reversal::Column::Reference])
            .filter(payment_reversal::Column::CreatedAt.lt(self.before.as_ms()))
            .filter(payment_reversal::Column::SourceRef.not_in_subquery(lots))
            .limit(self.limit)
            .into_tuple()
            .all(tx)
            .await?;
        let mut purged = 0;
        for (source_ref, reference) in old {
            purged += payment_reversal::Entity::delete_by_id((source_ref, reference)).exec(tx).await?.rows_affected;
        }
        Ok(purged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_rounds_down_and_never_exceeds_the_whole() {
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
