//! Reads of the keys, and the creation of the first one.

use sea_orm::{EntityTrait, QueryOrder, QuerySelect};

use super::key::{EvidenceKey, MAX_EVIDENCE_KEYS, NewEvidenceKey, current, insert, lock, read};
use crate::Result;
use crate::areas::Evidence;
use crate::database::{Transaction, Tx};
use crate::entities::evidence_key;

struct EnsureKey(NewEvidenceKey);

impl Evidence<'_> {
    /// The key that is in use. `None` before the first use.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn current_key(self) -> Result<Option<EvidenceKey>> {
        current(self.store.database.reader()).await
    }

    /// The key that is in use. If there is none, it is the new one from now on.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn ensure_key(self, new: NewEvidenceKey) -> Result<EvidenceKey> {
        self.store.database.write(EnsureKey(new)).await
    }

    /// The public keys of all keys that were ever in use, newest first.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn list_public_keys(self) -> Result<Vec<Vec<u8>>> {
        let keys = evidence_key::Entity::find()
            .select_only()
            .column(evidence_key::Column::PublicKey)
            .order_by_desc(evidence_key::Column::CreatedAt)
            .order_by_desc(evidence_key::Column::Id)
            .limit(MAX_EVIDENCE_KEYS)
            .into_tuple::<Vec<u8>>()
            .all(self.store.database.reader())
            .await?;
        Ok(keys)
    }

    /// All keys that were ever in use, newest first.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn list_keys(self) -> Result<Vec<EvidenceKey>> {
        let rows = evidence_key::Entity::find()
            .order_by_desc(evidence_key::Column::CreatedAt)
            .order_by_desc(evidence_key::Column::Id)
            .limit(MAX_EVIDENCE_KEYS)
            .all(self.store.database.reader())
            .await?;
        Ok(rows.into_iter().map(read).collect())
    }
}

impl Transaction for EnsureKey {
    type Outcome = EvidenceKey;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<EvidenceKey> {
        lock(tx).await?;
        match current(tx).await? {
            Some(key) => Ok(key),
            None => insert(tx, &self.0).await,
        }
    }
}
