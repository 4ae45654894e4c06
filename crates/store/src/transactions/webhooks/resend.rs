//! A message is asked for: a test, or one that was sent before.

use grabd_domain::Timestamp;
use grabd_domain::ids::DeliveryId;
use grabd_domain::webhooks::{Delivery, DeliveryStatus, Event};
use sea_orm::sea_query::{Expr, LockType};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};

use super::change::Mine;
use super::owe;
use crate::database::{Transaction, Tx};
use crate::entities::delivery;
use crate::{Error, Result, Store};

struct Test {
    mine: Mine,
    id: DeliveryId,
    now: Timestamp,
}

struct Again {
    mine: Mine,
    id: DeliveryId,
    now: Timestamp,
}

/// What asking for a message came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resent {
    /// It is due now.
    Due(Delivery),
    /// Nothing is sent to an endpoint that is disabled.
    Disabled,
    /// The caller has no such endpoint.
    NoEndpoint,
    /// The endpoint has no such delivery.
    NoDelivery,
}

impl Store {
    /// Owes an endpoint a test message under a new id.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn test_endpoint(&self, mine: Mine, id: DeliveryId, now: Timestamp) -> Result<Resent> {
        self.database.write(Test { mine, id, now }).await
    }

    /// Has a message sent once more, now: the same bytes under the same id.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn redeliver(&self, mine: Mine, id: DeliveryId, now: Timestamp) -> Result<Resent> {
        self.database.write(Again { mine, id, now }).await
    }
}

impl Transaction for Test {
    type Outcome = Resent;

    async fn apply(&self, tx: &Tx) -> Result<Resent> {
        if let Some(refused) = refusal(tx, self.mine).await? {
            return Ok(refused);
        }
        let row = owe::new(self.id, self.mine.endpoint.0, None, Event::Test, self.now);
        let row = delivery::Entity::insert(row).exec_with_returning(tx).await?;
        Ok(Resent::Due(delivery::read(&row)?))
    }
}

impl Transaction for Again {
    type Outcome = Resent;

    async fn apply(&self, tx: &Tx) -> Result<Resent> {
        if let Some(refused) = refusal(tx, self.mine).await? {
            return Ok(refused);
        }
        let updated = delivery::Entity::update_many()
            .col_expr(delivery::Column::State, Expr::value(delivery::state(DeliveryStatus::Pending)))
            .col_expr(delivery::Column::NextAt, Expr::value(self.now.as_ms()))
            .filter(delivery::Column::Id.eq(self.id.0))
            .filter(delivery::Column::EndpointId.eq(self.mine.endpoint.0))
            .exec_with_returning(tx)
            .await?;
        match updated.as_slice() {
            [] => Ok(Resent::NoDelivery),
            [row] => Ok(Resent::Due(delivery::read(row)?)),
            _ => Err(Error::Inconsistent("two deliveries with one id")),
        }
    }
}

async fn refusal(tx: &Tx, mine: Mine) -> Result<Option<Resent>> {
    Ok(match mine.lock(tx, LockType::Share).await? {
        None => Some(Resent::NoEndpoint),
        Some(endpoint) if endpoint.disabled.is_some() => Some(Resent::Disabled),
        Some(_) => None,
    })
}
