//! Grants credits: adds a lot and its ledger entry.

use grabd_domain::Timestamp;
use grabd_domain::credits::{EntryKind, LotKind};
use grabd_domain::ids::{LotId, TeamId};
use sea_orm::ActiveValue::Set;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, TryInsertResult};

use crate::areas::Credits;
use crate::audit::AuditEvent;
use crate::credits::ledger::{NewEntry, append};
use crate::database::{Transaction, Tx};
use crate::entities::lot;
use crate::{Error, Result, codes};

/// Credits to grant.
#[derive(Clone, Debug)]
pub struct Grant {
    /// The team.
    pub team: TeamId,
    /// Subscription or prepaid.
    pub kind: LotKind,
    /// Number of credits, at least one.
    pub credits: u32,
    /// When unused credits expire. Required for subscriptions, absent for prepaid credits.
    pub expires_at: Option<Timestamp>,
    /// Reference of the payment or decision behind it. Each reference grants once.
    pub source_ref: String,
    /// Current time.
    pub now: Timestamp,
}

/// Outcome of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantOutcome {
    /// A new lot was created.
    New(LotId),
    /// The same grant created this lot before.
    Repeated(LotId),
}

impl Credits<'_> {
    /// Grants credits, once for each `source_ref`.
    ///
    /// # Errors
    /// [`Error::Constraint`] when the team does not exist or the terms are invalid, [`Error::Inconsistent`] when the
    /// reference was used for a grant with other terms.
    pub async fn grant(self, grant: Grant) -> Result<GrantOutcome> {
        let event = AuditEvent::new("credits.grant", &grant.source_ref, Some(grant.team))
            .with(&format_args!("{} credits", grant.credits));
        self.store.write_audited(grant, event, |outcome| matches!(outcome, GrantOutcome::New(_))).await
    }
}

impl Transaction for Grant {
    type Outcome = GrantOutcome;

    async fn apply(&self, tx: &Tx) -> Result<GrantOutcome> {
        self.apply_with_reference(tx, &self.source_ref).await
    }
}

impl Grant {
    /// Grants the credits, with `reference` in the ledger entry instead of the grant's own reference.
    pub(super) async fn apply_with_reference(&self, tx: &Tx, reference: &str) -> Result<GrantOutcome> {
        let credits =
            i32::try_from(self.credits).map_err(|_| Error::Inconsistent("more credits than a lot can hold"))?;
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
        let (team, kind, reference) = (self.team.0, EntryKind::Grant, Some(reference));
        append(tx, NewEntry { team, lot, kind, amount: credits, grab: None, reference }, self.now).await?;
        Ok(GrantOutcome::New(LotId(lot)))
    }

    async fn repeated(&self, tx: &Tx, credits: i32) -> Result<GrantOutcome> {
        let lot = lot::Entity::find()
            .filter(lot::Column::SourceRef.eq(self.source_ref.as_str()))
            .one(tx)
            .await?
            .ok_or(Error::Inconsistent("lot disappeared"))?;
        let same = lot.team_id == self.team.0 && lot.kind == codes::lot_kind(self.kind) && lot.granted == credits;
        if !same {
            return Err(Error::Inconsistent("source_ref was used for a grant with other terms"));
        }
        Ok(GrantOutcome::Repeated(LotId(lot.id)))
    }
}
