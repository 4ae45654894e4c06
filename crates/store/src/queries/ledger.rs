//! A team's lots and the entries of its ledger.

use grabd_domain::Timestamp;
use grabd_domain::credits::{EntryKind, Lot};
use grabd_domain::ids::{GrabId, LotId, TeamId};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

use crate::codes;
use crate::entities::{ledger, lot};
use crate::{Error, Result, Store};

/// A credit that came or went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number, by which one pages.
    pub id: i64,
    /// Of which lot.
    pub lot: LotId,
    /// What it records.
    pub kind: EntryKind,
    /// Credits: positive when they came, negative when they went.
    pub amount: i32,
    /// For which grab a credit was spent.
    pub grab: Option<GrabId>,
    /// The payment or decision behind it.
    pub reference: Option<String>,
    /// When.
    pub at: Timestamp,
}

impl Store {
    /// A team's lots in the order they are spent, ended and empty ones too.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn lots(&self, team: TeamId) -> Result<Vec<Lot>> {
        let rows = lot::Entity::find()
            .filter(lot::Column::TeamId.eq(team.0))
            .order_by_asc(lot::Column::Kind)
            .order_by_asc(lot::Column::ExpiresAt)
            .order_by_asc(lot::Column::Id)
            .all(self.database.reader())
            .await?;
        rows.into_iter().map(Lot::try_from).collect()
    }

    /// At most `limit` entries of a team's ledger, the newest first, those before entry `before` when given.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn ledger(&self, team: TeamId, before: Option<i64>, limit: u32) -> Result<Vec<Entry>> {
        let mut page = ledger::Entity::find().filter(ledger::Column::TeamId.eq(team.0));
        if let Some(before) = before {
            page = page.filter(ledger::Column::Id.lt(before));
        }
        let rows = page.order_by_desc(ledger::Column::Id).limit(u64::from(limit)).all(self.database.reader()).await?;
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
