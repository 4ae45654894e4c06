//! Credits come in: a lot, and its entry in the ledger.

use grabd_domain::Timestamp;
use grabd_domain::credits::{EntryKind, LotKind};
use grabd_domain::ids::{LotId, TeamId};
use sea_orm::ActiveValue::Set;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, TryInsertResult};

use crate::codes;
use crate::database::{Transaction, Tx};
use crate::entities::{ledger, lot};
use crate::{Error, Result, Store};

/// Credits to grant.
#[derive(Clone, Debug)]
pub struct Grant {
    /// To whom.
    pub team: TeamId,
    /// Where they come from.
    pub kind: LotKind,
    /// How many; at least one.
    pub credits: u32,
    /// When the rest lapses: present for a subscription, absent for prepaid ones.
    pub expires_at: Option<Timestamp>,
    /// The payment or decision behind it. The same one grants once.
    pub source_ref: String,
    /// When.
    pub now: Timestamp,
}

/// What a grant came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granted {
    /// A new lot.
    New(LotId),
    /// The lot that the same grant made before.
    Repeated(LotId),
}

impl Store {
    /// Grants credits, once for each `source_ref`.
    ///
    /// # Errors
    /// [`Error::Constraint`] when there is no such team or the terms cannot be, [`Error::Inconsistent`] when the same
    /// reference stands for a grant with other terms.
    pub async fn grant(&self, grant: Grant) -> Result<Granted> {
        self.database.write(grant).await
    }
}

impl Transaction for Grant {
    type Outcome = Granted;

    async fn apply(&self, tx: &Tx) -> Result<Granted> {
        self.apply_for(tx, &self.source_ref).await
    }
}

impl Grant {
    /// The same with other words in the ledger than the grant's own reference.
    pub(super) async fn apply_for(&self, tx: &Tx, reference: &str) -> Result<Granted> {
        let credits = i32::try_from(self.credits).map_err(|_| Error::Inconsistent("more credits than a lot holds"))?;
        let row = lot::ActiveModel {
            team_id: Set(self.team.0),
            kind: Set(codes::lot_kind(self.kind)),
            granted: Set(credits),
            remaining: Set(credits),
            held: Set(0),
            expires_at: Set(self.expires_at.map(Timestamp::as_ms)),
            source_ref: Set(self.source_ref.clone()),
            cancelled: Set(false),
            created_at: Set(self.now.as_ms()),
            ..Default::default()
        };
        let inserted = lot::Entity::insert(row).on_conflict_do_nothing_on([lot::Column::SourceRef]).exec(tx).await?;
        let TryInsertResult::Inserted(inserted) = inserted else { return self.repeated(tx, credits).await };
        let lot = inserted.last_insert_id;
        let entry = ledger::ActiveModel {
            team_id: Set(self.team.0),
            lot_id: Set(lot),
            kind: Set(codes::entry_kind(EntryKind::Grant)),
            amount: Set(credits),
            reference: Set(Some(reference.to_owned())),
            at: Set(self.now.as_ms()),
            ..Default::default()
        };
        ledger::Entity::insert(entry).exec_without_returning(tx).await?;
        Ok(Granted::New(LotId(lot)))
    }

    async fn repeated(&self, tx: &Tx, credits: i32) -> Result<Granted> {
        let lot = lot::Entity::find()
            .filter(lot::Column::SourceRef.eq(self.source_ref.as_str()))
            .one(tx)
            .await?
            .ok_or(Error::Inconsistent("a lot that was there is gone"))?;
        let same = lot.team_id == self.team.0 && lot.kind == codes::lot_kind(self.kind) && lot.granted == credits;
        if !same {
            return Err(Error::Inconsistent("this source_ref stands for a grant with other terms"));
        }
        Ok(Granted::Repeated(LotId(lot.id)))
    }
}
