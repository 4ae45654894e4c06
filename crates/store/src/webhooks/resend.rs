//! Enqueues test messages and redeliveries.

use grabd_domain::Timestamp;
use grabd_domain::ids::DeliveryId;
use grabd_domain::webhooks::{Delivery, DeliveryStatus, Event, MAX_SENDS};
use sea_orm::sea_query::{Expr, LockType};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QuerySelect};

use super::change::EndpointRef;
use super::enqueue;
use super::open::full;
use crate::areas::Webhooks;
use crate::database::{Transaction, Tx};
use crate::entities::delivery;
use crate::{Error, Result, codes};

struct SendTest {
    target: EndpointRef,
    id: DeliveryId,
    now: Timestamp,
}

struct Redeliver {
    target: EndpointRef,
    id: DeliveryId,
    now: Timestamp,
}

/// Outcome of requesting a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResendOutcome {
    /// The delivery is due now, or was stored as exhausted.
    Due(Delivery),
    /// The endpoint is disabled.
    Disabled,
    /// The caller has no such endpoint.
    NoEndpoint,
    /// The endpoint has no such delivery.
    NoDelivery,
    /// The message was sent this often, which is the maximum or more.
    TooManyAttempts(u32),
    /// Too many deliveries to the endpoint are open.
    TooManyOpen,
}

impl Webhooks<'_> {
    /// Enqueues a test message under a new id. If too many deliveries to the endpoint are open, it is stored as exhausted.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn test_endpoint(self, target: EndpointRef, id: DeliveryId, now: Timestamp) -> Result<ResendOutcome> {
        self.store.database.write(SendTest { target, id, now }).await
    }

    /// Schedules a message to be sent again now, with the same body and id, unless it was sent [`MAX_SENDS`] times.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn redeliver(self, target: EndpointRef, id: DeliveryId, now: Timestamp) -> Result<ResendOutcome> {
        self.store.database.write(Redeliver { target, id, now }).await
    }
}

impl Transaction for SendTest {
    type Outcome = ResendOutcome;

    async fn apply(&self, tx: &Tx) -> Result<ResendOutcome> {
        if let Some(rejected) = check_endpoint(tx, self.target).await? {
            return Ok(rejected);
        }
        let row = enqueue::new(self.id, self.target.endpoint.0, None, Event::Test, self.now);
        let is_full = full(tx, [self.target.endpoint.0]).await?.contains(&self.target.endpoint);
        let row = if is_full { enqueue::not_sent(row) } else { row };
        let row = delivery::Entity::insert(row).exec_with_returning(tx).await?;
        enqueue::delete_old_messages(tx, self.target.endpoint).await?;
        Ok(ResendOutcome::Due(delivery::read(&row)?))
    }
}

impl Transaction for Redeliver {
    type Outcome = ResendOutcome;

    async fn apply(&self, tx: &Tx) -> Result<ResendOutcome> {
        if let Some(rejected) = check_endpoint(tx, self.target).await? {
            return Ok(rejected);
        }
        // Locked, so that concurrent requests do not exceed the limit.
        let id = delivery::Entity::find_by_id(self.id.0);
        let found = id.filter(delivery::Column::EndpointId.eq(self.target.endpoint.0)).lock(LockType::Update);
        let Some(row) = found.one(tx).await? else { return Ok(ResendOutcome::NoDelivery) };
        let attempts = codes::read_count(row.attempt.into())?;
        if attempts >= MAX_SENDS {
            return Ok(ResendOutcome::TooManyAttempts(attempts));
        }
        if row.next_at.is_none() && full(tx, [self.target.endpoint.0]).await?.contains(&self.target.endpoint) {
            return Ok(ResendOutcome::TooManyOpen);
        }
        let updated = delivery::Entity::update_many()
            .col_expr(delivery::Column::State, Expr::value(delivery::state(DeliveryStatus::Pending)))
            .col_expr(delivery::Column::NextAt, Expr::value(self.now.as_ms()))
            .col_expr(delivery::Column::NotSent, Expr::value(Option::<i16>::None))
            .filter(delivery::Column::Id.eq(row.id))
            .exec_with_returning(tx)
            .await?;
        match updated.as_slice() {
            [row] => Ok(ResendOutcome::Due(delivery::read(row)?)),
            _ => Err(Error::Inconsistent("a locked delivery is missing or duplicate")),
        }
    }
}

async fn check_endpoint(tx: &Tx, target: EndpointRef) -> Result<Option<ResendOutcome>> {
    Ok(match target.lock(tx, LockType::Share).await? {
        None => Some(ResendOutcome::NoEndpoint),
        Some(endpoint) if endpoint.disabled.is_some() => Some(ResendOutcome::Disabled),
        Some(_) => None,
    })
}
