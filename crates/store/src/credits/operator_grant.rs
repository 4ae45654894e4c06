//! Grants credits by hand.

use grabd_domain::credits::LotKind;
use grabd_domain::ids::LotId;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};

use crate::areas::Credits;
use crate::audit::AuditEvent;
use crate::credits::grant::{Grant, GrantOutcome};
use crate::database::{Transaction, Tx};
use crate::entities::lot;
use crate::{Error, Result, codes};

/// A credit grant by an operator.
#[derive(Clone, Debug)]
pub struct OperatorGrant {
    /// The grant. Its `source_ref` identifies one form submission, which grants once.
    pub grant: Grant,
    /// The reason, recorded in the ledger.
    pub reason: String,
}

/// Outcome of an operator's grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperatorGrantOutcome {
    /// A new lot was created.
    New(LotId),
    /// The same grant created this lot before.
    Repeated(LotId),
    /// Nothing was granted: the `source_ref` was used for a different grant.
    Conflict,
}

impl Credits<'_> {
    /// Grants credits manually, once for each `source_ref`.
    ///
    /// # Errors
    /// [`Error::Constraint`] when the team does not exist.
    pub async fn grant_by_operator(self, grant: OperatorGrant) -> Result<OperatorGrantOutcome> {
        let event = AuditEvent::new("credits.grant", &grant.grant.source_ref, Some(grant.grant.team))
            .with(&format_args!("{} credits: {}", grant.grant.credits, grant.reason));
        self.store.write_audited(grant, event, |outcome| matches!(outcome, OperatorGrantOutcome::New(_))).await
    }
}

impl Transaction for OperatorGrant {
    type Outcome = OperatorGrantOutcome;

    async fn apply(&self, tx: &Tx) -> Result<OperatorGrantOutcome> {
        let Self { grant, reason } = self;
        let existing = lot::Entity::find().filter(lot::Column::SourceRef.eq(grant.source_ref.as_str())).one(tx).await?;
        if let Some(existing) = existing {
            let credits =
                i32::try_from(grant.credits).map_err(|_| Error::Inconsistent("more credits than a lot can hold"))?;
            let same = existing.team_id == grant.team.0
                && existing.kind == codes::lot_kind(LotKind::Prepaid)
                && existing.granted == credits;
            return Ok(if same {
                OperatorGrantOutcome::Repeated(LotId(existing.id))
            } else {
                OperatorGrantOutcome::Conflict
            });
        }
        match grant.apply_with_reference(tx, reason).await? {
            GrantOutcome::New(lot) => Ok(OperatorGrantOutcome::New(lot)),
            // A concurrent transaction inserted it after the check above.
            GrantOutcome::Repeated(lot) => Ok(OperatorGrantOutcome::Repeated(lot)),
        }
    }
}
