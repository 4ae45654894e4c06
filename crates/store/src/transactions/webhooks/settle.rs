//! An attempt has ended: delivered, to be repeated, or given up.

use grabd_domain::Timestamp;
use grabd_domain::ids::{DeliveryId, EndpointId};
use grabd_domain::webhooks::{DeliveryStatus, Disabled, FAILING_LIMIT, NoAnswer};
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};

use super::disable;
use crate::database::{Transaction, Tx};
use crate::entities::{delivery, webhook_endpoint};
use crate::{Result, Store};

/// An attempt that has ended.
#[derive(Clone, Debug)]
pub struct Attempted {
    /// At which delivery.
    pub delivery: DeliveryId,
    /// To which endpoint.
    pub endpoint: EndpointId,
    /// The how-manieth. If another has begun meanwhile, that one has the word.
    pub number: u32,
    /// When it was made.
    pub at: Timestamp,
    /// When it ended.
    pub now: Timestamp,
    /// The HTTP status, or why there was no answer.
    pub answer: std::result::Result<u16, NoAnswer>,
    /// What follows.
    pub then: Then,
}

/// What follows an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// Nothing: it arrived.
    Delivered,
    /// Another one.
    Again(Timestamp),
    /// Nothing: that was the last one.
    Exhausted,
    /// Nothing, here or at any other message: the endpoint wants no more.
    Gone,
}

impl Store {
    /// Records how an attempt ended. Answers why the endpoint was disabled, if this did it: it is gone, or it has failed
    /// for too long.
    ///
    /// # Errors
    /// Only of the database. Then the delivery is due again when its lease ends.
    pub async fn settle(&self, attempted: Attempted) -> Result<Option<Disabled>> {
        self.database.write(attempted).await
    }
}

impl Transaction for Attempted {
    type Outcome = Option<Disabled>;

    async fn apply(&self, tx: &Tx) -> Result<Option<Disabled>> {
        let (status, next_at) = match self.then {
            Then::Delivered => (DeliveryStatus::Delivered, None),
            Then::Again(at) => (DeliveryStatus::Failed, Some(at.as_ms())),
            Then::Exhausted | Then::Gone => (DeliveryStatus::Exhausted, None),
        };
        let took_ms = i32::try_from(self.now.since(self.at).as_millis()).unwrap_or(i32::MAX);
        // The endpoint before its deliveries, as everybody locks them.
        let failing_since = self.note(tx, status).await?;
        delivery::Entity::update_many()
            .col_expr(delivery::Column::State, Expr::value(delivery::state(status)))
            .col_expr(delivery::Column::NextAt, Expr::value(next_at))
            .col_expr(
                delivery::Column::LastCode,
                Expr::value(self.answer.ok().and_then(|code| i16::try_from(code).ok())),
            )
            .col_expr(delivery::Column::NoAnswer, Expr::value(self.answer.err().map(delivery::no_answer)))
            .col_expr(delivery::Column::TookMs, Expr::value(took_ms))
            .col_expr(delivery::Column::AttemptedAt, Expr::value(self.at.as_ms()))
            .filter(delivery::Column::Id.eq(self.delivery.0))
            .filter(delivery::Column::Attempt.eq(i16::try_from(self.number).unwrap_or(i16::MAX)))
            // Cancelled meanwhile: it stays so, unless it has arrived all the same.
            .filter(match status {
                DeliveryStatus::Delivered => delivery::Column::Id.is_not_null(),
                DeliveryStatus::Pending | DeliveryStatus::Failed | DeliveryStatus::Exhausted => {
                    delivery::Column::NextAt.is_not_null()
                }
            })
            .exec(tx)
            .await?;
        let why = match self.then {
            Then::Gone => Disabled::Gone,
            Then::Again(_) | Then::Exhausted
                if failing_since.is_some_and(|since| self.now.since(since) >= FAILING_LIMIT) =>
            {
                Disabled::Failing
            }
            Then::Delivered | Then::Again(_) | Then::Exhausted => return Ok(None),
        };
        Ok(disable(tx, self.endpoint.0, why).await?.then_some(why))
    }
}

impl Attempted {
    /// Notes at the endpoint that it works, or since when it does not, which is the answer.
    async fn note(&self, tx: &Tx, status: DeliveryStatus) -> Result<Option<Timestamp>> {
        let endpoint = webhook_endpoint::Entity::find_by_id(self.endpoint.0).one(tx).await?;
        let Some(endpoint) = endpoint else { return Ok(None) };
        let since = endpoint.failing_since.map(Timestamp::from_ms);
        let noted = match (status == DeliveryStatus::Delivered, since) {
            (true, None) | (false, Some(_)) => return Ok(since),
            (true, Some(_)) => None,
            (false, None) => Some(self.now),
        };
        webhook_endpoint::Entity::update_many()
            .col_expr(webhook_endpoint::Column::FailingSince, Expr::value(noted.map(Timestamp::as_ms)))
            .filter(webhook_endpoint::Column::Id.eq(endpoint.id))
            .exec(tx)
            .await?;
        Ok(noted)
    }
}
