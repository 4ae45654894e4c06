//! Replaces the key that signs evidence.

use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter};

use super::key::{EvidenceKey, MAX_EVIDENCE_KEYS, NewEvidenceKey, current, insert, lock};
use crate::Result;
use crate::areas::Evidence;
use crate::audit::AuditEvent;
use crate::database::{Transaction, Tx};
use crate::entities::evidence_key;

/// Outcome of a replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RotateKeyOutcome {
    /// The new key is in use.
    Rotated {
        /// The new key.
        new: EvidenceKey,
        /// The id of the one before. `None` if this is the first.
        former: Option<String>,
    },
    /// The service has had as many keys as it may have.
    TooMany,
}

struct RotateKey(NewEvidenceKey);

impl Evidence<'_> {
    /// Puts a new key in the place of the one that is in use, whose private key is deleted. Its public key is kept.
    ///
    /// # Errors
    /// Database errors only; a rejected change is an outcome.
    pub async fn rotate_key(self, new: NewEvidenceKey) -> Result<RotateKeyOutcome> {
        let event = AuditEvent::new("evidence.rotate", &new.id, None);
        let rotated = |outcome: &RotateKeyOutcome| matches!(outcome, RotateKeyOutcome::Rotated { .. });
        self.store.write_audited(RotateKey(new), event, rotated).await
    }
}

impl Transaction for RotateKey {
    type Outcome = RotateKeyOutcome;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<RotateKeyOutcome> {
        lock(tx).await?;
        if evidence_key::Entity::find().count(tx).await? >= MAX_EVIDENCE_KEYS {
            return Ok(RotateKeyOutcome::TooMany);
        }
        let former = current(tx).await?.map(|key| key.id);
        evidence_key::Entity::update_many()
            .col_expr(evidence_key::Column::PrivateKey, Expr::value(None::<Vec<u8>>))
            .col_expr(evidence_key::Column::RetiredAt, Expr::value(self.0.now.as_ms()))
            .filter(evidence_key::Column::RetiredAt.is_null())
            .exec(tx)
            .await?;
        Ok(RotateKeyOutcome::Rotated { new: insert(tx, &self.0).await?, former })
    }
}
