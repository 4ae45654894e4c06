//! Cancels subscriptions. Their credits remain usable until the term ends.

use grabd_domain::Timestamp;
use grabd_domain::credits::LotKind;
use grabd_domain::ids::TeamId;
use sea_orm::sea_query::{Expr, LockType};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QuerySelect};

use crate::areas::Credits;
use crate::audit::AuditEvent;
use crate::database::{Transaction, Tx};
use crate::entities::{lot, team};
use crate::{Result, codes};

struct CancelSubscriptions {
    team: TeamId,
    now: Timestamp,
}

impl Credits<'_> {
    /// Cancels a team's current subscriptions and returns their number. A repeated call returns 0.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn cancel_subscriptions(self, team: TeamId, now: Timestamp) -> Result<u64> {
        let event = AuditEvent::new("subscription.cancel", &team, Some(team));
        self.store.write_audited(CancelSubscriptions { team, now }, event, |cancelled| *cancelled > 0).await
    }
}

impl Transaction for CancelSubscriptions {
    type Outcome = u64;

    async fn apply(&self, tx: &Tx) -> Result<u64> {
        // Lock order: team before lot.
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
