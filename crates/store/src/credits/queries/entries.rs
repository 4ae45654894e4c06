//! A team's lots and the entries of its ledger.

use grabd_domain::Timestamp;
use grabd_domain::credits::{EntryKind, Lot};
use grabd_domain::ids::{GrabId, LotId, TeamId};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

use crate::areas::Credits;
use crate::codes;
use crate::entities::{ledger, lot};
use crate::{Error, Result};

/// A ledger entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number; the cursor for paging.
    pub id: i64,
    /// The lot.
    pub lot: LotId,
    /// The kind of entry.
    pub kind: EntryKind,
    /// Credits: positive when added, negative when removed.
    pub amount: i32,
    /// The grab a credit was spent for.
    pub grab: Option<GrabId>,
    /// Reference of the payment or decision behind it.
    pub reference: Option<String>,
    /// Time of the entry.
    pub at: Timestamp,
}

impl Credits<'_> {
    /// All lots of a team in spending order, including expired and empty ones.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn lots(self, team: TeamId) -> Result<Vec<Lot>> {
        let rows = lot::Entity::find()
            .filter(lot::Column::TeamId.eq(team.0))
            .order_by_asc(lot::Column::Kind)
            .order_by_asc(lot::Column::ExpiresAt)
            .order_by_asc(lot::Column::Id)
            .all(self.store.database.reader())
            .await?;
        rows.into_iter().map(Lot::try_from).collect()
    }

    /// Up to `limit` entries of a team's ledger, newest first, optionally only those before entry `before`.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn ledger(self, team: TeamId, before: Option<i64>, limit: u32) -> Result<Vec<Entry>> {
        let mut page = ledger::Entity::find().filter(ledger::Column::TeamId.eq(team.0));
        if let Some(before) = before {
            page = page.filter(ledger::Column::Id.lt(before));
        }
        let rows =
            page.order_by_desc(ledger::Column::Id).limit(u64::from(limit)).all(self.store.database.reader()).await?;
        rows.into_iter().map(Entry::try_from).collect()
    }
}

impl TryFrom<ledger::Model> for Entry {
    type Error = Error;

    fn try_from(row: ledger::Model) -> Result<Self> {
        let ledger::Model { id, team_id: _, lot_id, kind, amount, grab_id, reference, at } = row;
        Ok(Self {
            id,
            lot: LotId(lot_id),
            kind: codes::read_entry_kind(kind)?,
            amount,
            grab: grab_id.map(GrabId),
            reference,
            at: Timestamp::from_ms(at),
        })
    }
}
