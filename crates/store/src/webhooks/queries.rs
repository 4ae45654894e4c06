//! Webhook endpoints and their deliveries.

use grabd_domain::Timestamp;
use grabd_domain::credentials::Environment;
use grabd_domain::ids::{DeliveryId, EndpointId, GrabId, GrantId, TeamId};
use grabd_domain::webhooks::{DELIVERY_RETENTION, Delivery, Endpoint};
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, Select};
use uuid::Uuid;

use crate::Result;
use crate::areas::Webhooks;
use crate::entities::{delivery, webhook_endpoint};
use crate::webhooks::change::EndpointRef;

/// A page of deliveries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deliveries {
    /// Newest first.
    pub deliveries: Vec<Delivery>,
    /// Whether there are older ones.
    pub has_more: bool,
}

/// A delivery with its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The delivery.
    pub delivery: Delivery,
    /// The reported grab; `None` for a test message.
    pub grab: Option<GrabId>,
    /// The exact body that is sent; set by the first attempt.
    pub body: Option<String>,
}

impl Webhooks<'_> {
    /// Finds an endpoint of a caller.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn find_endpoint(self, target: EndpointRef) -> Result<Option<Endpoint>> {
        target.query().one(self.store.database.reader()).await?.map(webhook_endpoint::read).transpose()
    }

    /// Finds an endpoint on behalf of an operator.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn find_endpoint_by_id(self, id: EndpointId) -> Result<Option<Endpoint>> {
        let found = webhook_endpoint::Entity::find_by_id(id.0).one(self.store.database.reader()).await?;
        found.map(webhook_endpoint::read).transpose()
    }

    /// All endpoints of a team, or those that an app has created with its grant, newest first.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn list_endpoints(
        self,
        team: TeamId,
        environment: Environment,
        grant: Option<GrantId>,
    ) -> Result<Vec<Endpoint>> {
        let newest_first = webhook_endpoint::scoped(team, environment, grant)
            .order_by_desc(webhook_endpoint::Column::CreatedAt)
            .order_by_desc(webhook_endpoint::Column::Id);
        let rows = newest_first.all(self.store.database.reader()).await?;
        rows.into_iter().map(webhook_endpoint::read).collect()
    }

    /// The encrypted secret of the most recently registered endpoint of all teams, to check the encryption key.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn newest_secret(self) -> Result<Option<(EndpointId, Vec<u8>)>> {
        let newest: Option<(Uuid, Vec<u8>)> = webhook_endpoint::Entity::find()
            .select_only()
            .columns([webhook_endpoint::Column::Id, webhook_endpoint::Column::Secret])
            .order_by_desc(webhook_endpoint::Column::CreatedAt)
            .limit(1)
            .into_tuple()
            .one(self.store.database.reader())
            .await?;
        Ok(newest.map(|(id, secret)| (EndpointId(id), secret)))
    }

    /// A page of the deliveries to an endpoint within the last month. `None` when `after` is not one of them. The
    /// caller must have checked access to the endpoint.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn list_deliveries(
        self,
        endpoint: EndpointId,
        after: Option<DeliveryId>,
        limit: u32,
        now: Timestamp,
    ) -> Result<Option<Deliveries>> {
        let mut query = listed(endpoint, now);
        if let Some(after) = after {
            let created_at: Option<i64> = listed(endpoint, now)
                .select_only()
                .column(delivery::Column::CreatedAt)
                .filter(delivery::Column::Id.eq(after.0))
                .into_tuple()
                .one(self.store.database.reader())
                .await?;
            let Some(created_at) = created_at else { return Ok(None) };
            let sort_key = Expr::tuple([Expr::col(delivery::Column::CreatedAt), Expr::col(delivery::Column::Id)]);
            query = query.filter(sort_key.lt(Expr::tuple([Expr::value(created_at), Expr::value(after.0)])));
        }
        let rows = query
            .order_by_desc(delivery::Column::CreatedAt)
            .order_by_desc(delivery::Column::Id)
            // One extra row tells whether there are more.
            .limit(u64::from(limit) + 1)
            .all(self.store.database.reader())
            .await?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let has_more = rows.len() > limit;
        let deliveries = rows.iter().take(limit).map(delivery::read).collect::<Result<_>>()?;
        Ok(Some(Deliveries { deliveries, has_more }))
    }

    /// One delivery of an endpoint, as long as it is listed. The caller must have checked access to the endpoint.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn find_delivery(self, endpoint: EndpointId, id: DeliveryId, now: Timestamp) -> Result<Option<Message>> {
        let query = listed(endpoint, now).filter(delivery::Column::Id.eq(id.0));
        let Some(row) = query.one(self.store.database.reader()).await? else { return Ok(None) };
        let delivery = delivery::read(&row)?;
        Ok(Some(Message { delivery, grab: row.grab_id.map(GrabId), body: row.body }))
    }
}

fn listed(endpoint: EndpointId, now: Timestamp) -> Select<delivery::Entity> {
    delivery::Entity::find()
        .filter(delivery::Column::EndpointId.eq(endpoint.0))
        .filter(delivery::Column::CreatedAt.gte((now - DELIVERY_RETENTION).as_ms()))
}
