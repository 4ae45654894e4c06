//! A subscription is cancelled. Nothing is taken: its credits stay until its term ends.

use grabd_domain::Timestamp;
use grabd_domain::credits::LotKind;
use grabd_domain::ids::TeamId;
use sea_orm::sea_query::{Expr, LockType};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QuerySelect};

use crate::database::{Transaction, Tx};
use crate::entities::{lot, team};
use crate::{Result, Store, codes};

struct Cancellation {
    team: TeamId,
    now: Timestamp,
}

impl Store {
    /// Cancels a team's subscriptions whose terms run, and answers how many that were. Repeating it finds none.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn cancel_subscriptions(&self, team: TeamId, now: Timestamp) -> Result<u64> {
        self.database.write(Cancellation { team, now }).await
    }
}

impl Transaction for Cancellation {
    type Outcome = u64;

    async fn apply(&self, tx: &Tx) -> Result<u64> {
        // In the order of everybody else, team before lot.
        team::Entity::find_by_id(self.team.0).lock(LockType::NoKeyUpdate).one(tx).await?;
        let cancelled = lot::Entity::update_many()
            .col_expr(lot::Column::Cancelled, Expr::value(true))
            .filter(lot::Column::TeamId.eq(self.team.0))
            .filter(lot::Column::Kind.eq(codes::lot_kind(LotKind::Subscription)))
            .filter(lot::Column::ExpiresAt.gt(self.now.as_ms()))
            .filter(lot::Column::Cancelled.eq(false))
            .exec(tx)
            .await?;
        Ok(cancelled.rows_affected)
    }
}
