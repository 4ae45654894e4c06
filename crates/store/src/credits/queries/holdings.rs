//! Lots of a team with remaining credits, and their origin.

use grabd_domain::Timestamp;
use grabd_domain::credits::Lot;
use grabd_domain::ids::TeamId;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

use crate::Result;
use crate::areas::Credits;
use crate::entities::lot;

/// A lot with remaining credits and its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holding {
    /// The lot.
    pub lot: Lot,
    /// Reference of the payment or decision behind it.
    pub source_ref: String,
    /// When it was granted.
    pub granted_at: Timestamp,
}

impl Credits<'_> {
    /// Up to `limit` lots of a team that have remaining credits, in spending order.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn holdings(self, team: TeamId, limit: u32) -> Result<Vec<Holding>> {
        let rows = lot::Entity::find()
            .filter(lot::Column::TeamId.eq(team.0))
            .filter(lot::Column::Remaining.gt(0))
            .order_by_asc(lot::Column::Kind)
            .order_by_asc(lot::Column::ExpiresAt)
            .order_by_asc(lot::Column::Id)
            .limit(u64::from(limit))
            .all(self.store.database.reader())
            .await?;
        let holding = |row: lot::Model| {
            let (source_ref, granted_at) = (row.source_ref.clone(), Timestamp::from_ms(row.created_at));
            Ok(Holding { lot: Lot::try_from(row)?, source_ref, granted_at })
        };
        rows.into_iter().map(holding).collect()
    }
}
