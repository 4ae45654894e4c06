//! Senders with room take what is due. One that dies does no harm: what it took is due again when its lease ends.

use std::collections::HashMap;

use grabd_domain::Timestamp;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::Grab;
use grabd_domain::ids::{DeliveryId, EndpointId};
use grabd_domain::target::TargetUrl;
use grabd_domain::webhooks::{DeliveryStatus, Event};
use sea_orm::sea_query::{Expr, ExprTrait, LockBehavior, LockType};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use crate::database::{Transaction, Tx};
use crate::entities::{delivery, grab, webhook_endpoint};
use crate::queries::padded;
use crate::{Result, Store, codes};

/// Rows looked at for each one that may be taken: so many of one endpoint's may lie before another's.
const LOOK_BEYOND: usize = 8;

/// How many attempts may begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    /// In all.
    pub total: usize,
    /// To one endpoint, those under way included: a slow one must not take the room of all others.
    pub per_endpoint: usize,
    /// Under way, by endpoint.
    pub busy: HashMap<EndpointId, usize>,
}

/// What a message is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owed {
    /// Its id.
    pub id: DeliveryId,
    /// Who gets it.
    pub endpoint: EndpointId,
    /// What it is about.
    pub event: Event,
    /// When that happened.
    pub at: Timestamp,
    /// In which environment.
    pub environment: Environment,
    /// The grab it is about; a test is about none.
    pub grab: Option<Grab>,
}

/// An attempt to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// At which delivery.
    pub delivery: DeliveryId,
    /// To which endpoint.
    pub endpoint: EndpointId,
    /// The how-manieth, from 1.
    pub number: u32,
    /// Where to.
    pub url: TargetUrl,
    /// What signs it, encrypted: the secret and, for a while after a rotation, the one before.
    pub secrets: Vec<Vec<u8>>,
    /// What is sent, the same at every attempt.
    pub body: String,
}

struct Take<F> {
    now: Timestamp,
    until: Timestamp,
    room: Room,
    compose: F,
}

impl Store {
    /// Takes what is due, the longest overdue first, and leaves it to this caller until `until`.
    ///
    /// A message is composed in the transaction that takes it for the first time, and kept: every attempt sends the same
    /// bytes.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn take_due<F>(&self, now: Timestamp, until: Timestamp, room: Room, compose: F) -> Result<Vec<Attempt>>
    where
        F: Fn(&Owed) -> String + Send + Sync + 'static,
    {
        self.database.write(Take { now, until, room, compose }).await
    }
}

impl<F: Fn(&Owed) -> String + Send + Sync + 'static> Transaction for Take<F> {
    type Outcome = Vec<Attempt>;

    async fn apply(&self, tx: &Tx) -> Result<Vec<Attempt>> {
        let due = delivery::Entity::find()
            .filter(delivery::Column::NextAt.lte(self.now.as_ms()))
            .filter(delivery::Column::EndpointId.is_not_in(self.full()))
            .order_by_asc(delivery::Column::NextAt)
            .limit(u64::try_from(self.room.total * LOOK_BEYOND).unwrap_or(u64::MAX))
            .lock_with_behavior(LockType::Update, LockBehavior::SkipLocked)
            .all(tx)
            .await?;
        let endpoints = endpoints_of(tx, &due).await?;
        let mut room = self.room.clone();
        let mut attempts = Vec::new();
        for row in due {
            let endpoint = endpoints.get(&row.endpoint_id).filter(|endpoint| endpoint.disabled.is_none());
            let Some(endpoint) = endpoint else {
                settle_for_nobody(tx, row.id).await?;
                continue;
            };
            let busy = room.busy.entry(EndpointId(endpoint.id)).or_default();
            if room.total == 0 || *busy >= room.per_endpoint {
                continue;
            }
            if let Some(attempt) = self.begin(tx, row, endpoint).await? {
                room.total -= 1;
                *busy += 1;
                attempts.push(attempt);
            }
        }
        Ok(attempts)
    }
}

impl<F: Fn(&Owed) -> String + Send + Sync + 'static> Take<F> {
    /// The endpoints that have no room left.
    fn full(&self) -> Vec<Uuid> {
        let full = self.room.busy.iter().filter(|(_, busy)| **busy >= self.room.per_endpoint);
        full.map(|(endpoint, _)| endpoint.0).collect()
    }

    async fn begin(
        &self,
        tx: &Tx,
        row: delivery::Model,
        endpoint: &webhook_endpoint::Model,
    ) -> Result<Option<Attempt>> {
        let number = codes::read_count(row.attempt.into())? + 1;
        let body = match row.body {
            Some(body) => body,
            None => match self.compose(tx, &row, endpoint).await? {
                Some(body) => body,
                None => {
                    settle_for_nobody(tx, row.id).await?;
                    return Ok(None);
                }
            },
        };
        delivery::Entity::update_many()
            .col_expr(delivery::Column::Body, Expr::value(body.as_str()))
            .col_expr(delivery::Column::Attempt, Expr::col(delivery::Column::Attempt).add(1i16))
            .col_expr(delivery::Column::NextAt, Expr::value(self.until.as_ms()))
            .filter(delivery::Column::Id.eq(row.id))
            .exec(tx)
            .await?;
        let previous = endpoint.previous_until.is_some_and(|until| until > self.now.as_ms());
        let previous = endpoint.previous_secret.clone().filter(|_| previous);
        Ok(Some(Attempt {
            delivery: DeliveryId(row.id),
            endpoint: EndpointId(endpoint.id),
            number,
            url: webhook_endpoint::read_url(&endpoint.url)?,
            secrets: std::iter::once(endpoint.secret.clone()).chain(previous).collect(),
            body,
        }))
    }

    /// `None` when what the message is about is not there any more.
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
        Ok(Some((self.compose)(&Owed {
            id: DeliveryId(row.id),
            endpoint: EndpointId(endpoint.id),
            event: delivery::read_event(row.event)?,
            at: Timestamp::from_ms(row.created_at),
            environment: codes::read_environment(endpoint.env)?,
            grab,
        })))
    }
}

async fn endpoints_of(tx: &Tx, due: &[delivery::Model]) -> Result<HashMap<Uuid, webhook_endpoint::Model>> {
    if due.is_empty() {
        return Ok(HashMap::new());
    }
    let ids = padded(due.iter().map(|row| row.endpoint_id));
    let rows = webhook_endpoint::Entity::find().filter(webhook_endpoint::Column::Id.is_in(ids)).all(tx).await?;
    Ok(rows.into_iter().map(|row| (row.id, row)).collect())
}

/// Nobody is there to get it, or there is nothing to tell: it must not be found due for ever.
async fn settle_for_nobody(tx: &Tx, id: Uuid) -> Result<()> {
    delivery::Entity::update_many()
        .col_expr(delivery::Column::State, Expr::value(delivery::state(DeliveryStatus::Exhausted)))
        .col_expr(delivery::Column::NextAt, Expr::value(Option::<i64>::None))
        .filter(delivery::Column::Id.eq(id))
        .exec(tx)
        .await?;
    Ok(())
}
