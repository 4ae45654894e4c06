//! Finds due deliveries, for senders that choose which of them are sent next.

use std::ops::RangeInclusive;

use grabd_domain::Timestamp;
use grabd_domain::ids::{DeliveryId, EndpointId, PayerId};
use grabd_domain::webhooks::DeliveryError;
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{ColumnTrait, EntityTrait, FromQueryResult, JoinType, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use super::lease::{DELIVERIES, ENDPOINTS};
use crate::Result;
use crate::areas::Webhooks;
use crate::entities::{delivery, webhook_endpoint};
use crate::first_owner::first_owner;
use crate::padded::padded;
use crate::set_aside::MaybeReadable;

/// A delivery that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueDelivery {
    /// The delivery.
    pub id: DeliveryId,
    /// Its endpoint.
    pub endpoint: EndpointId,
    /// The payer of the endpoint's team. If the endpoint was removed, a payer of its own.
    pub payer: PayerId,
    /// Since when it is due.
    pub due_at: Timestamp,
    /// Whether its last attempt timed out.
    pub has_timed_out: bool,
}

#[derive(FromQueryResult)]
struct DueRow {
    id: Uuid,
    endpoint_id: Uuid,
    next_at: i64,
    no_answer: Option<i16>,
    payer: Option<Uuid>,
}

impl Webhooks<'_> {
    /// Up to `limit` deliveries that became due in this time, longest overdue first, without those that were set aside.
    /// They may be leased by another sender before this one leases them.
    ///
    /// # Errors
    /// Errors of the database as a whole.
    pub async fn due_deliveries(
        self,
        due: RangeInclusive<Timestamp>,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<DueDelivery>> {
        let of_endpoint = delivery::Entity::belongs_to(webhook_endpoint::Entity)
            .from(delivery::Column::EndpointId)
            .to(webhook_endpoint::Column::Id)
            .into();
        let team = Expr::col((webhook_endpoint::Entity, webhook_endpoint::Column::TeamId));
        // As for renders.
        let payer = Expr::from(first_owner(team.clone())).if_null(team);
        let rows = delivery::Entity::find()
            .select_only()
            .columns([
                delivery::Column::Id,
                delivery::Column::EndpointId,
                delivery::Column::NextAt,
                delivery::Column::NoAnswer,
            ])
            .expr_as(payer, "payer")
            .join(JoinType::LeftJoin, of_endpoint)
            .filter(delivery::Column::NextAt.between(due.start().as_ms(), due.end().as_ms()))
            .filter(delivery::Column::Id.is_not_in(padded(self.store.set_aside.keys::<Uuid>(DELIVERIES, now))))
            .filter(delivery::Column::EndpointId.is_not_in(padded(self.store.set_aside.keys::<Uuid>(ENDPOINTS, now))))
            .order_by_asc(delivery::Column::NextAt)
            .limit(u64::from(limit))
            .into_model::<MaybeReadable<Uuid, DueRow>>()
            .all(self.store.database.reader())
            .await?;
        let timed_out = delivery::no_answer(DeliveryError::TimedOut);
        let rows = self.store.set_aside.readable(DELIVERIES, rows, now);
        Ok(rows
            .into_iter()
            .map(|row| DueDelivery {
                id: DeliveryId(row.id),
                endpoint: EndpointId(row.endpoint_id),
                payer: PayerId(row.payer.unwrap_or(row.endpoint_id)),
                due_at: Timestamp::from_ms(row.next_at),
                has_timed_out: row.no_answer == timed_out,
            })
            .collect())
    }
}
