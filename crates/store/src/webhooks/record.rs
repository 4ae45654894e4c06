//! Records the result of a delivery attempt.

use grabd_domain::Timestamp;
use grabd_domain::ids::{DeliveryId, EndpointId};
use grabd_domain::webhooks::{DeliveryError, DeliveryStatus, DisabledReason, FAILING_LIMIT};
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};

use super::disable;
use crate::Result;
use crate::areas::Webhooks;
use crate::database::{Transaction, Tx};
use crate::entities::{delivery, webhook_endpoint};

/// The result of a delivery attempt.
#[derive(Clone, Debug)]
pub struct DeliveryAttemptResult {
    /// The delivery.
    pub delivery: DeliveryId,
    /// The endpoint.
    pub endpoint: EndpointId,
    /// Number of the attempt. The result is ignored when a later attempt has started.
    pub number: u32,
    /// When the attempt started.
    pub at: Timestamp,
    /// When the attempt ended.
    pub now: Timestamp,
    /// The HTTP status, or why there was no response.
    pub answer: std::result::Result<u16, DeliveryError>,
    /// What happens next.
    pub after: AfterDelivery,
}

/// What happens after a delivery attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterDelivery {
    /// Delivered; no further attempt.
    Delivered,
    /// Retry at this time.
    Retry(Timestamp),
    /// Failed; that was the last attempt.
    Exhausted,
    /// The endpoint is gone (HTTP 410): no further attempt, and the endpoint is disabled.
    Gone,
}

impl Webhooks<'_> {
    /// Records the result of an attempt. Returns the reason if this disabled the endpoint: it is gone or has failed for
    /// too long.
    ///
    /// # Errors
    /// Database errors only. The delivery is then due again when its lease ends.
    pub async fn record_attempt(self, result: DeliveryAttemptResult) -> Result<Option<DisabledReason>> {
        self.store.database.write(result).await
    }
}

impl Transaction for DeliveryAttemptResult {
    type Outcome = Option<DisabledReason>;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<Option<DisabledReason>> {
        let (status, next_at) = match self.after {
            AfterDelivery::Delivered => (DeliveryStatus::Delivered, None),
            AfterDelivery::Retry(at) => (DeliveryStatus::Failed, Some(at.as_ms())),
            AfterDelivery::Exhausted | AfterDelivery::Gone => (DeliveryStatus::Exhausted, None),
        };
        let took_ms = i32::try_from(self.now.since(self.at).as_millis()).unwrap_or(i32::MAX);
        // Lock order: endpoint before delivery.
        let failing_since = self.update_failing_since(tx, status).await?;
        delivery::Entity::update_many()
            .col_expr(delivery::Column::State, Expr::value(delivery::state(status)))
            .col_expr(delivery::Column::NextAt, Expr::value(next_at))
            .col_expr(
                delivery::Column::LastCode,
                Expr::value(self.answer.ok().and_then(|code| i16::try_from(code).ok())),
            )
            .col_expr(delivery::Column::NoAnswer, Expr::value(self.answer.err().and_then(delivery::no_answer)))
            .col_expr(delivery::Column::TookMs, Expr::value(took_ms))
            .col_expr(delivery::Column::AttemptedAt, Expr::value(self.at.as_ms()))
            .filter(delivery::Column::Id.eq(self.delivery.0))
            .filter(delivery::Column::Attempt.eq(i16::try_from(self.number).unwrap_or(i16::MAX)))
            // A delivery cancelled during the attempt stays cancelled, unless the attempt succeeded.
            .filter(match status {
                DeliveryStatus::Delivered => delivery::Column::Id.is_not_null(),
                DeliveryStatus::Pending | DeliveryStatus::Failed | DeliveryStatus::Exhausted => {
                    delivery::Column::NextAt.is_not_null()
                }
            })
            .exec(tx)
            .await?;
        let reason = match self.after {
            AfterDelivery::Gone => DisabledReason::Gone,
            AfterDelivery::Retry(_) | AfterDelivery::Exhausted
                if failing_since.is_some_and(|since| self.now.since(since) >= FAILING_LIMIT) =>
            {
                DisabledReason::Failing
            }
            AfterDelivery::Delivered | AfterDelivery::Retry(_) | AfterDelivery::Exhausted => return Ok(None),
        };
        Ok(disable(tx, self.endpoint.0, reason).await?.then_some(reason))
    }
}

impl DeliveryAttemptResult {
    /// Updates `failing_since` of the endpoint and returns it.
    async fn update_failing_since(&self, tx: &Tx, status: DeliveryStatus) -> Result<Option<Timestamp>> {
        let endpoint = webhook_endpoint::Entity::find_by_id(self.endpoint.0).one(tx).await?;
        let Some(endpoint) = endpoint else { return Ok(None) };
        let since = endpoint.failing_since.map(Timestamp::from_ms);
        let updated = match (status == DeliveryStatus::Delivered, since) {
            (true, None) | (false, Some(_)) => return Ok(since),
            (true, Some(_)) => None,
            (false, None) => Some(self.now),
        };
        webhook_endpoint::Entity::update_many()
            .col_expr(webhook_endpoint::Column::FailingSince, Expr::value(updated.map(Timestamp::as_ms)))
            .filter(webhook_endpoint::Column::Id.eq(endpoint.id))
            .exec(tx)
            .await?;
        Ok(updated)
    }
}
