//! A grab's picture is deleted on request. The row stays: it was paid for.

use grabd_domain::Timestamp;
use grabd_domain::credentials::Environment;
use grabd_domain::ids::{GrabId, TeamId};
use sea_orm::sea_query::{Expr, LockType};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QuerySelect};

use super::idempotency::forget;
use super::images::collect;
use crate::database::{Transaction, Tx};
use crate::entities::grab;
use crate::{Result, Store};

struct Deletion {
    team: TeamId,
    environment: Environment,
    grab: GrabId,
    now: Timestamp,
}

impl Store {
    /// Deletes a grab's picture; `false` when the caller has no such grab. Repeating it keeps the first time.
    ///
    /// An open grab runs on, and its picture is collected the moment it is finished.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn delete_grab(
        &self,
        team: TeamId,
        environment: Environment,
        grab: GrabId,
        now: Timestamp,
    ) -> Result<bool> {
        self.database.write(Deletion { team, environment, grab, now }).await
    }
}

impl Transaction for Deletion {
    type Outcome = bool;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        let mine = grab::scoped(self.team, self.environment).filter(grab::Column::Id.eq(self.grab.0));
        let Some(row) = mine.lock(LockType::NoKeyUpdate).one(tx).await? else { return Ok(false) };
        if row.deleted_at.is_some() {
            return Ok(true);
        }
        grab::Entity::update_many()
            .col_expr(grab::Column::DeletedAt, Expr::value(self.now.as_ms()))
            .col_expr(grab::Column::ImageKey, Expr::value(Option::<String>::None))
            .filter(grab::Column::Id.eq(row.id))
            .exec(tx)
            .await?;
        forget(tx, self.grab).await?;
        if let Some(key) = row.image_key {
            collect(tx, &key, self.now).await?;
        }
        Ok(true)
    }
}
