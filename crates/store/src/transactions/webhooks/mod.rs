//! Endpoints come, change and go; what is owed to them is written with the end of a grab, taken, and settled.
//!
//! Locks are taken in this order, after those of a grab: endpoint, delivery.

pub(crate) mod change;
pub(crate) mod owe;
pub(crate) mod purge;
pub(crate) mod register;
pub(crate) mod resend;
pub(crate) mod settle;
pub(crate) mod take;

use grabd_domain::webhooks::{DeliveryStatus, Disabled};
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};
use uuid::Uuid;

use crate::Result;
use crate::database::Tx;
use crate::entities::{delivery, webhook_endpoint};

/// No more messages for an endpoint, and no more attempts at those it is owed.
async fn disable(tx: &Tx, endpoint: Uuid, why: Disabled) -> Result<bool> {
    let updated = webhook_endpoint::Entity::update_many()
        .col_expr(webhook_endpoint::Column::Disabled, Expr::value(webhook_endpoint::disabled(why)))
        .filter(webhook_endpoint::Column::Id.eq(endpoint))
        .filter(webhook_endpoint::Column::Disabled.is_null())
        .exec(tx)
        .await?;
    give_up(tx, endpoint).await?;
    Ok(updated.rows_affected > 0)
}

/// What an endpoint is still owed is not sent.
async fn give_up(tx: &Tx, endpoint: Uuid) -> Result<()> {
    delivery::Entity::update_many()
        .col_expr(delivery::Column::State, Expr::value(delivery::state(DeliveryStatus::Exhausted)))
        .col_expr(delivery::Column::NextAt, Expr::value(Option::<i64>::None))
        .filter(delivery::Column::EndpointId.eq(endpoint))
        .filter(delivery::Column::NextAt.is_not_null())
        .exec(tx)
        .await?;
    Ok(())
}
