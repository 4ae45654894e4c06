//! Leases due deliveries to senders. If a sender crashes, its deliveries are due again when the lease ends.

use std::collections::HashMap;

use grabd_domain::Timestamp;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::Grab;
use grabd_domain::ids::{DeliveryId, EndpointId};
use grabd_domain::target::TargetUrl;
use grabd_domain::webhooks::{DeliveryStatus, Event};
use sea_orm::sea_query::{Expr, LockBehavior, LockType};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QuerySelect, TransactionTrait};
use uuid::Uuid;

use super::creators::Inactive;
use crate::areas::Webhooks;
use crate::database::{Transaction, Tx};
use crate::entities::{delivery, grab, webhook_endpoint};
use crate::padded::padded;
use crate::set_aside::{MaybeReadable, split_readable};
use crate::{Error, Result, codes};

pub(super) const DELIVERIES: &str = "deliveries";
pub(super) const ENDPOINTS: &str = "endpoints";

/// The content of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageContent {
    /// Its id.
    pub id: DeliveryId,
    /// The receiving endpoint.
    pub endpoint: EndpointId,
    /// The event.
    pub event: Event,
    /// Time of the event.
    pub at: Timestamp,
    /// The environment.
    pub environment: Environment,
    /// The reported grab; `None` for a test message.
    pub grab: Option<Grab>,
}

/// A delivery attempt to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryAttempt {
    /// The delivery.
    pub delivery: DeliveryId,
    /// The endpoint.
    pub endpoint: EndpointId,
    /// Number of the attempt, from 1.
    pub number: u32,
    /// The destination.
    pub url: TargetUrl,
    /// Encrypted signing secrets: the current one and, for a while after a rotation, the previous one.
    pub secrets: Vec<Vec<u8>>,
    /// The body, identical in every attempt.
    pub body: String,
}

struct LeaseDue<F> {
    deliveries: Vec<DeliveryId>,
    now: Timestamp,
    until: Timestamp,
    compose: F,
}

impl Webhooks<'_> {
    /// Leases those of the deliveries that are still due, until `until`, and returns their attempts in the same order.
    ///
    /// The body is composed and stored in the transaction of the first lease, so every attempt sends the same bytes.
    /// Deliveries and endpoints that cannot be processed are set aside.
    ///
    /// # Errors
    /// Errors of the database as a whole.
    pub async fn lease_deliveries<F>(
        self,
        deliveries: Vec<DeliveryId>,
        now: Timestamp,
        until: Timestamp,
        compose: F,
    ) -> Result<Vec<DeliveryAttempt>>
    where
        F: Fn(&MessageContent) -> String + Send + Sync + 'static,
    {
        let lease = LeaseDue { deliveries, now, until, compose };
        let Due { attempts, unprocessable } = self.store.database.write(lease).await?;
        for (work, row, error) in unprocessable {
            self.store.set_aside.add(work, &row, &error, now);
        }
        Ok(attempts)
    }
}

/// The outcome of leasing due deliveries.
struct Due {
    attempts: Vec<DeliveryAttempt>,
    /// Kind of work, key and error of each row that cannot be processed.
    unprocessable: Vec<(&'static str, Uuid, Error)>,
}

impl<F: Fn(&MessageContent) -> String + Send + Sync + 'static> Transaction for LeaseDue<F> {
    type Outcome = Due;

    async fn apply(&self, tx: &Tx) -> Result<Due> {
        let due = delivery::Entity::find()
            .filter(delivery::Column::Id.is_in(padded(self.deliveries.iter().map(|delivery| delivery.0))))
            .filter(delivery::Column::NextAt.lte(self.now.as_ms()))
            .lock_with_behavior(LockType::Update, LockBehavior::SkipLocked)
            .into_model::<MaybeReadable<Uuid, delivery::Model>>()
            .all(tx)
            .await?;
        let (due, unreadable) = split_readable(due);
        let of = |work: &'static str| move |(row, error)| (work, row, error);
        let mut unprocessable: Vec<_> = unreadable.into_iter().map(of(DELIVERIES)).collect();
        let (endpoints, unreadable) = endpoints_of(tx, &due).await?;
        let inactive = Inactive::find(tx, endpoints.values().map(|endpoint| endpoint.grant_id), self.now).await?;
        let mut due: HashMap<_, _> = due.into_iter().map(|row| (row.id, row)).collect();
        let mut attempts = Vec::new();
        for row in self.deliveries.iter().filter_map(|delivery| due.remove(&delivery.0)) {
            if unreadable.iter().any(|(endpoint, _)| *endpoint == row.endpoint_id) {
                continue;
            }
            let endpoint = endpoints.get(&row.endpoint_id);
            let endpoint =
                endpoint.filter(|endpoint| endpoint.disabled.is_none() && !inactive.contains(endpoint.grant_id));
            let Some(endpoint) = endpoint else {
                abandon(tx, row.id).await?;
                continue;
            };
            let id = row.id;
            // A savepoint, so that a statement that fails for this row undoes nothing else.
            let savepoint = tx.begin().await?;
            match self.begin(&savepoint, row, endpoint).await {
                Ok(attempt) => {
                    savepoint.commit().await?;
                    attempts.extend(attempt);
                }
                Err(error) if error.concerns_row() => {
                    savepoint.rollback().await?;
                    unprocessable.push((DELIVERIES, id, error));
                }
                Err(error) => return Err(error),
            }
        }
        unprocessable.extend(unreadable.into_iter().map(of(ENDPOINTS)));
        Ok(Due { attempts, unprocessable })
    }
}

impl<F: Fn(&MessageContent) -> String + Send + Sync + 'static> LeaseDue<F> {
    async fn begin(
        &self,
        tx: &Tx,
        row: delivery::Model,
        endpoint: &webhook_endpoint::Model,
    ) -> Result<Option<DeliveryAttempt>> {
        // Saturates: redeliveries are bounded, but attempts of a message that cannot be signed are not.
        let attempt = row.attempt.saturating_add(1);
        let number = codes::read_count(attempt.into())?;
        let body = match row.body {
            Some(body) => body,
            None => match self.compose(tx, &row, endpoint).await? {
                Some(body) => body,
                None => {
                    abandon(tx, row.id).await?;
                    return Ok(None);
                }
            },
        };
        delivery::Entity::update_many()
            .col_expr(delivery::Column::Body, Expr::value(body.as_str()))
            .col_expr(delivery::Column::Attempt, Expr::value(attempt))
            .col_expr(delivery::Column::NextAt, Expr::value(self.until.as_ms()))
            .filter(delivery::Column::Id.eq(row.id))
            .exec(tx)
            .await?;
        let previous = endpoint.previous_until.is_some_and(|until| until > self.now.as_ms());
        let previous = endpoint.previous_secret.clone().filter(|_| previous);
        Ok(Some(DeliveryAttempt {
            delivery: DeliveryId(row.id),
            endpoint: EndpointId(endpoint.id),
            number,
            url: webhook_endpoint::read_url(&endpoint.url)?,
            secrets: std::iter::once(endpoint.secret.clone()).chain(previous).collect(),
            body,
        }))
    }

    /// `None` when the grab no longer exists.
    async fn compose(
        &self,
        tx: &Tx,
        row: &delivery::Model,
        endpoint: &webhook_endpoint::Model,
    ) -> Result<Option<String>> {
        let grab = match row.grab_id {
            None => None,
            Some(id) => match grab::Entity::find_by_id(id).one(tx).await? {
                None => return Ok(None),
                Some(found) => Some(grab::read(found, None)?),
            },
        };
        Ok(Some((self.compose)(&MessageContent {
            id: DeliveryId(row.id),
            endpoint: EndpointId(endpoint.id),
            event: delivery::read_event(row)?,
            at: Timestamp::from_ms(row.created_at),
            environment: codes::read_environment(endpoint.env)?,
            grab,
        })))
    }
}

type Endpoints = HashMap<Uuid, webhook_endpoint::Model>;

/// The endpoints of the deliveries, and those that cannot be read.
async fn endpoints_of(tx: &Tx, due: &[delivery::Model]) -> Result<(Endpoints, Vec<(Uuid, Error)>)> {
    if due.is_empty() {
        return Ok((HashMap::new(), Vec::new()));
    }
    let ids = padded(due.iter().map(|row| row.endpoint_id));
    let rows = webhook_endpoint::Entity::find()
        .filter(webhook_endpoint::Column::Id.is_in(ids))
        .into_model::<MaybeReadable<Uuid, webhook_endpoint::Model>>()
        .all(tx)
        .await?;
    let (readable, unreadable) = split_readable(rows);
    Ok((readable.into_iter().map(|row| (row.id, row)).collect(), unreadable))
}

/// Ends a delivery whose endpoint is missing, disabled or that of an app without access, or whose grab no longer exists, so
/// that it is no longer due.
async fn abandon(tx: &Tx, id: Uuid) -> Result<()> {
    delivery::Entity::update_many()
        .col_expr(delivery::Column::State, Expr::value(delivery::state(DeliveryStatus::Exhausted)))
        .col_expr(delivery::Column::NextAt, Expr::value(Option::<i64>::None))
        .filter(delivery::Column::Id.eq(id))
        .exec(tx)
        .await?;
    Ok(())
}
