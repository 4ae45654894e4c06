//! Webhook endpoints and deliveries. Deliveries are enqueued in the transaction that ends a grab, leased by senders,
//! and updated after each attempt.
//!
//! Lock order, after the locks of a grab: endpoint, delivery.

pub(crate) mod change;
pub(crate) mod creators;
pub(crate) mod due;
pub(crate) mod enqueue;
pub(crate) mod lease;
mod open;
pub(crate) mod purge;
pub(crate) mod queries;
pub(crate) mod record;
pub(crate) mod register;
pub(crate) mod resend;

pub use change::{EndpointRef, NewEndpointSecret};
pub use due::DueDelivery;
pub use lease::{DeliveryAttempt, MessageContent};
pub use queries::{Deliveries, Message};
pub use record::{AfterDelivery, DeliveryAttemptResult};
pub use register::{NewEndpoint, RegisterOutcome};
pub use resend::ResendOutcome;

use grabd_domain::webhooks::{DeliveryStatus, DisabledReason};
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};
use uuid::Uuid;

use crate::Result;
use crate::database::Tx;
use crate::entities::{delivery, webhook_endpoint};

/// Disables an endpoint and cancels its pending deliveries.
pub(super) async fn disable(tx: &Tx, endpoint: Uuid, why: DisabledReason) -> Result<bool> {
    let updated = webhook_endpoint::Entity::update_many()
        .col_expr(webhook_endpoint::Column::Disabled, Expr::value(webhook_endpoint::disabled(why)))
        .filter(webhook_endpoint::Column::Id.eq(endpoint))
        .filter(webhook_endpoint::Column::Disabled.is_null())
        .exec(tx)
        .await?;
    cancel_pending(tx, endpoint).await?;
    Ok(updated.rows_affected > 0)
}

/// Cancels all pending deliveries to an endpoint.
pub(super) async fn cancel_pending(tx: &Tx, endpoint: Uuid) -> Result<()> {
    delivery::Entity::update_many()
        .col_expr(delivery::Column::State, Expr::value(delivery::state(DeliveryStatus::Exhausted)))
        .col_expr(delivery::Column::NextAt, Expr::value(Option::<i64>::None))
        .filter(delivery::Column::EndpointId.eq(endpoint))
        .filter(delivery::Column::NextAt.is_not_null())
        .exec(tx)
        .await?;
    Ok(())
}
