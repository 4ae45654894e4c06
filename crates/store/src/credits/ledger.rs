//! The only place that writes entries of the ledger.

use grabd_domain::Timestamp;
use grabd_domain::credits::EntryKind;
use sea_orm::ActiveValue::Set;
use sea_orm::EntityTrait;
use uuid::Uuid;

use crate::database::Tx;
use crate::entities::ledger;
use crate::{Result, codes};

/// A change of a lot.
pub(super) struct NewEntry<'a> {
    pub(super) team: Uuid,
    pub(super) lot: i64,
    pub(super) kind: EntryKind,
    /// Change of the remaining credits.
    pub(super) amount: i32,
    /// The grab that spent the credit.
    pub(super) grab: Option<Uuid>,
    pub(super) reference: Option<&'a str>,
}

/// Adds an entry. The caller changes the lot in the same transaction.
pub(super) async fn append(tx: &Tx, entry: NewEntry<'_>, now: Timestamp) -> Result<()> {
    append_all(tx, [(entry, now)]).await
}

/// Adds entries, at least one. The caller changes the lots in the same transaction.
pub(super) async fn append_all<'a>(
    tx: &Tx,
    entries: impl IntoIterator<Item = (NewEntry<'a>, Timestamp)> + Send,
) -> Result<()> {
    let rows: Vec<_> = entries.into_iter().map(|(entry, now)| row(&entry, now)).collect();
    ledger::Entity::insert_many(rows).exec_without_returning(tx).await?;
    Ok(())
}

fn row(entry: &NewEntry<'_>, now: Timestamp) -> ledger::ActiveModel {
    let &NewEntry { team, lot, kind, amount, grab, reference } = entry;
    ledger::ActiveModel {
        team_id: Set(team),
        lot_id: Set(lot),
        kind: Set(codes::entry_kind(kind)),
        amount: Set(amount),
        grab_id: Set(grab),
        reference: Set(reference.map(str::to_owned)),
        at: Set(now.as_ms()),
        ..Default::default()
    }
}
