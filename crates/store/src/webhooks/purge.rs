//! Deletes deliveries after a month.

use grabd_domain::Timestamp;
use grabd_domain::webhooks::DELIVERY_RETENTION;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use crate::Result;
use crate::areas::Webhooks;
use crate::database::{Transaction, Tx};
use crate::entities::delivery;
use crate::padded::padded;

struct PurgeDeliveries {
    now: Timestamp,
    limit: u32,
}

impl Webhooks<'_> {
    /// Deletes up to `limit` deliveries that are no longer listed and returns their number.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn purge_deliveries(self, now: Timestamp, limit: u32) -> Result<u64> {
        self.store.database.write(PurgeDeliveries { now, limit }).await
    }
}

impl Transaction for PurgeDeliveries {
    type Outcome = u64;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<u64> {
        let old: Vec<Uuid> = delivery::Entity::find()
            .select_only()
            .column(delivery::Column::Id)
            .filter(delivery::Column::CreatedAt.lt((self.now - DELIVERY_RETENTION).as_ms()))
            .order_by_asc(delivery::Column::CreatedAt)
            .limit(u64::from(self.limit))
            .into_tuple()
            .all(tx)
            .await?;
        if old.is_empty() {
            return Ok(0);
        }
        let delete = delivery::Entity::delete_many();
        Ok(delete.filter(delivery::Column::Id.is_in(padded(old))).exec(tx).await?.rows_affected)
    }
}
