//! Challenges that were answered. A challenge itself is not stored before: its token is with the browser.

use grabd_domain::Timestamp;
use sea_orm::ActiveValue::Set;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait, TryInsertResult};

use crate::Result;
use crate::areas::Accounts;
use crate::database::{Transaction, Tx};
use crate::entities::answered_challenge;

/// A challenge that was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// SHA-256 of the challenge.
    pub hash: [u8; 32],
    /// When it expires.
    pub expires_at: Timestamp,
}

struct PurgeChallenges {
    now: Timestamp,
    limit: u32,
}

impl Accounts<'_> {
    /// Deletes up to `limit` answered challenges that have expired, and returns their number.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn purge_challenges(self, now: Timestamp, limit: u32) -> Result<u64> {
        self.store.database.write(PurgeChallenges { now, limit }).await
    }
}

impl Challenge {
    /// Records the answer. `false`, without any change, when the challenge was answered before.
    pub(super) async fn answer(self, tx: &Tx) -> Result<bool> {
        let row =
            answered_challenge::ActiveModel { hash: Set(self.hash.to_vec()), expires_at: Set(self.expires_at.as_ms()) };
        let inserted = answered_challenge::Entity::insert(row)
            .on_conflict_do_nothing_on([answered_challenge::Column::Hash])
            .exec_without_returning(tx)
            .await?;
        Ok(matches!(inserted, TryInsertResult::Inserted(1..)))
    }
}

impl Transaction for PurgeChallenges {
    type Outcome = u64;

    async fn apply(&self, tx: &Tx) -> Result<u64> {
        let expired = answered_challenge::Entity::find()
            .select_only()
            .column(answered_challenge::Column::Hash)
            .filter(answered_challenge::Column::ExpiresAt.lte(self.now.as_ms()))
            .order_by_asc(answered_challenge::Column::ExpiresAt)
            .limit(u64::from(self.limit))
            .into_query();
        let deleted = answered_challenge::Entity::delete_many()
            .filter(answered_challenge::Column::Hash.in_subquery(expired))
            .exec(tx)
            .await?;
        Ok(deleted.rows_affected)
    }
}
