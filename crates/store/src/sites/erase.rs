//! Deletes old jobs, and erases those of deleted teams.

use grabd_domain::Timestamp;
use grabd_domain::ids::TeamId;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use crate::Result;
use crate::areas::Retention;
use crate::database::{Transaction, Tx};
use crate::entities::site;
use crate::padded::padded;

/// Jobs that are deleted with all their pages in one transaction.
const SITES_DELETED: u64 = 10;

struct PurgeSites {
    finished_before: Timestamp,
    limit: u32,
}

impl Retention<'_> {
    /// Deletes some jobs, at most `limit`, that have ended before a time, and returns how many. Their grabs stay.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn purge_sites(self, finished_before: Timestamp, limit: u32) -> Result<u64> {
        self.store.database.write(PurgeSites { finished_before, limit }).await
    }
}

impl Transaction for PurgeSites {
    type Outcome = u64;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<u64> {
        let old: Vec<Uuid> = site::Entity::find()
            .select_only()
            .column(site::Column::Id)
            .filter(site::Column::FinishedAt.lt(self.finished_before.as_ms()))
            .order_by_asc(site::Column::FinishedAt)
            .limit(u64::from(self.limit))
            .into_tuple()
            .all(tx)
            .await?;
        if old.is_empty() {
            return Ok(0);
        }
        // Their pages are deleted by cascade.
        let deleted = site::Entity::delete_many().filter(site::Column::Id.is_in(padded(old))).exec(tx).await?;
        Ok(deleted.rows_affected)
    }
}

/// Deletes some jobs of a deleted team with their pages. Returns whether something is left.
pub(crate) async fn erase_sites(tx: &Tx, team: TeamId) -> Result<bool> {
    let some: Vec<Uuid> = site::Entity::find()
        .select_only()
        .column(site::Column::Id)
        .filter(site::Column::TeamId.eq(team.0))
        .limit(SITES_DELETED)
        .into_tuple()
        .all(tx)
        .await?;
    let is_left = u64::try_from(some.len()).unwrap_or(u64::MAX) >= SITES_DELETED;
    if !some.is_empty() {
        site::Entity::delete_many().filter(site::Column::Id.is_in(padded(some))).exec(tx).await?;
    }
    Ok(is_left)
}
