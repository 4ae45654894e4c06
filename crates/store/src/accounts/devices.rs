//! Remembers the browsers that somebody has signed in with.

use grabd_domain::Timestamp;
use grabd_domain::accounts::{DEVICE_LIFE, DEVICES};
use grabd_domain::ids::UserId;
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Expr, ExprTrait, LockType, OnConflict, Query};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

use crate::Result;
use crate::areas::Accounts;
use crate::database::{Transaction, Tx};
use crate::entities::{device, user};

/// A browser that somebody signed in with. Contains only a hash of its token.
#[derive(Clone, Debug)]
pub struct NewDevice {
    /// The user.
    pub user: UserId,
    /// SHA-256 of the browser's token.
    pub hash: [u8; 32],
    /// SHA-256 of the user and their network.
    pub network: [u8; 32],
    /// Current time.
    pub now: Timestamp,
}

struct PurgeDevices {
    now: Timestamp,
    limit: u32,
}

impl Accounts<'_> {
    /// Remembers a device, or its latest sign-in. Beyond [`DEVICES`] per user, the one whose last sign-in is oldest
    /// is forgotten.
    ///
    /// # Errors
    /// [`Error::Constraint`](crate::Error::Constraint) when the user does not exist.
    pub async fn remember_device(self, device: NewDevice) -> Result<()> {
        self.store.database.write(device).await
    }

    /// Forgets up to `limit` devices whose last sign-in was [`DEVICE_LIFE`] ago. Returns their number.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn purge_devices(self, now: Timestamp, limit: u32) -> Result<u64> {
        self.store.database.write(PurgeDevices { now, limit }).await
    }
}

impl Transaction for NewDevice {
    type Outcome = ();

    async fn apply(&self, tx: &Tx) -> Result<()> {
        // Serializes concurrent sign-ins of one user, so that the limit is exact.
        user::Entity::find_by_id(self.user.0).lock(LockType::NoKeyUpdate).one(tx).await?;
        let row = device::ActiveModel {
            user_id: Set(self.user.0),
            hash: Set(self.hash.to_vec()),
            network: Set(self.network.to_vec()),
            created_at: Set(self.now.as_ms()),
            seen_at: Set(self.now.as_ms()),
        };
        let again = OnConflict::columns([device::Column::UserId, device::Column::Hash])
            .update_columns([device::Column::Network, device::Column::SeenAt])
            .to_owned();
        device::Entity::insert(row).on_conflict(again).exec_without_returning(tx).await?;
        let oldest: Vec<Vec<u8>> = device::Entity::find()
            .select_only()
            .column(device::Column::Hash)
            .filter(device::Column::UserId.eq(self.user.0))
            .order_by_desc(device::Column::SeenAt)
            .order_by_asc(device::Column::Hash)
            .offset(DEVICES)
            .limit(DEVICES)
            .into_tuple()
            .all(tx)
            .await?;
        if !oldest.is_empty() {
            device::Entity::delete_many()
                .filter(device::Column::UserId.eq(self.user.0))
                .filter(device::Column::Hash.is_in(oldest))
                .exec(tx)
                .await?;
        }
        Ok(())
    }
}

impl Transaction for PurgeDevices {
    type Outcome = u64;

    async fn apply(&self, tx: &Tx) -> Result<u64> {
        let expired = Query::select()
            .columns([device::Column::UserId, device::Column::Hash])
            .from(device::Entity)
            .and_where(Expr::col(device::Column::SeenAt).lte((self.now - DEVICE_LIFE).as_ms()))
            .order_by(device::Column::SeenAt, sea_orm::Order::Asc)
            .limit(u64::from(self.limit))
            .take();
        let is_expired =
            Expr::tuple([Expr::col(device::Column::UserId), Expr::col(device::Column::Hash)]).in_subquery(expired);
        Ok(device::Entity::delete_many().filter(is_expired).exec(tx).await?.rows_affected)
    }
}
