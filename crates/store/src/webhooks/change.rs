//! Changes and removes endpoints and rotates their secrets.

use grabd_domain::Timestamp;
use grabd_domain::credentials::Environment;
use grabd_domain::ids::{EndpointId, GrantId, TeamId, UserId};
use grabd_domain::webhooks::{Creator, DisabledReason, Endpoint, EndpointUpdate};
use sea_orm::ActiveValue::{self, NotSet, Set, Unchanged};
use sea_orm::sea_query::{Expr, ExprTrait, LockType};
use sea_orm::{ActiveModelTrait, ColumnTrait, EntityTrait, QueryFilter, QuerySelect, Select};

use super::{cancel_pending, disable};
use crate::Result;
use crate::areas::Webhooks;
use crate::audit::AuditEvent;
use crate::database::{Transaction, Tx};
use crate::entities::delivery;
use crate::entities::webhook_endpoint::{self, Model, scoped, write_events};

/// An endpoint of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointRef {
    /// The caller's team.
    pub team: TeamId,
    /// The caller's environment.
    pub environment: Environment,
    /// The grant of a caller that is an app, which sees only what it has created with it.
    pub grant: Option<GrantId>,
    /// The endpoint.
    pub endpoint: EndpointId,
}

struct ChangeEndpoint {
    target: EndpointRef,
    change: EndpointUpdate,
}

/// A new secret of an endpoint.
#[derive(Clone, Debug)]
pub struct NewEndpointSecret {
    /// The endpoint.
    pub target: EndpointRef,
    /// The secret, encrypted.
    pub secret: Vec<u8>,
    /// The user to whom it is shown; `None` for an API key, an app or an operator.
    pub by: Option<UserId>,
    /// Current time.
    pub now: Timestamp,
    /// Until when the previous one also signs.
    pub previous_until: Timestamp,
}

struct RemoveEndpoint {
    target: EndpointRef,
}

struct KeepEndpoint {
    target: EndpointRef,
}

impl Webhooks<'_> {
    /// Changes an endpoint and returns it. `None` when the caller has no such endpoint. Disabling cancels its pending
    /// deliveries; enabling clears its failures.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn change_endpoint(self, target: EndpointRef, change: EndpointUpdate) -> Result<Option<Endpoint>> {
        self.store.database.write(ChangeEndpoint { target, change }).await
    }

    /// Sets a new secret, and returns the endpoint. `None` when the caller has no such endpoint.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn rotate_secret(self, new: NewEndpointSecret) -> Result<Option<Endpoint>> {
        let EndpointRef { team, endpoint, .. } = new.target;
        let event = AuditEvent::new("webhook.secret", &endpoint, Some(team));
        self.store.write_audited(new, event, Option::is_some).await
    }

    /// Removes an endpoint and cancels its pending deliveries. `false` when the caller has no such endpoint.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn remove_endpoint(self, target: EndpointRef) -> Result<bool> {
        self.store.database.write(RemoveEndpoint { target }).await
    }

    /// Records that a user knows an endpoint whose creator was not recorded. `false` when there is no such
    /// endpoint.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn keep_endpoint(self, target: EndpointRef) -> Result<bool> {
        self.store.database.write(KeepEndpoint { target }).await
    }
}

impl EndpointRef {
    /// Reads and locks the endpoint. The lock conflicts with grabs that end and enqueue deliveries for it.
    pub(super) async fn lock(&self, tx: &Tx, lock: LockType) -> Result<Option<Model>> {
        Ok(self.query().lock(lock).one(tx).await?)
    }

    /// Selects the endpoint, if the caller sees it.
    pub(super) fn query(&self) -> Select<webhook_endpoint::Entity> {
        let &Self { team, environment, grant, endpoint } = self;
        scoped(team, environment, grant).filter(webhook_endpoint::Column::Id.eq(endpoint.0))
    }
}

impl Transaction for ChangeEndpoint {
    type Outcome = Option<Endpoint>;

    async fn apply(&self, tx: &Tx) -> Result<Option<Endpoint>> {
        let Some(row) = self.target.lock(tx, LockType::Update).await? else { return Ok(None) };
        let EndpointUpdate { url, events, description, enabled } = &self.change;
        let mut changed = webhook_endpoint::ActiveModel {
            id: Unchanged(row.id),
            url: set(url.as_ref().map(ToString::to_string)),
            events: set(events.as_ref().map(write_events)),
            description: set(description.clone()),
            ..Default::default()
        };
        if *enabled == Some(true) && row.disabled.is_some() {
            changed.disabled = Set(None);
            changed.failing_since = Set(None);
        }
        let mut row = match changed.is_changed() {
            true => changed.update(tx).await?,
            false => row,
        };
        if *enabled == Some(false) && disable(tx, row.id, DisabledReason::Requested).await? {
            row.disabled = Some(webhook_endpoint::disabled(DisabledReason::Requested));
        }
        webhook_endpoint::read(row).map(Some)
    }
}

impl Transaction for NewEndpointSecret {
    type Outcome = Option<Endpoint>;

    async fn apply(&self, tx: &Tx) -> Result<Option<Endpoint>> {
        let Some(row) = self.target.lock(tx, LockType::Update).await? else { return Ok(None) };
        let changed = webhook_endpoint::ActiveModel {
            id: Unchanged(row.id),
            secret: Set(self.secret.clone()),
            previous_secret: Set(Some(row.secret)),
            previous_until: Set(Some(self.previous_until.as_ms())),
            secret_at: Set(Some(self.now.as_ms())),
            secret_by: Set(self.by.map(|user| user.0)),
            ..Default::default()
        };
        webhook_endpoint::read(changed.update(tx).await?).map(Some)
    }
}

impl Transaction for RemoveEndpoint {
    type Outcome = bool;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        let Some(row) = self.target.lock(tx, LockType::Update).await? else { return Ok(false) };
        webhook_endpoint::Entity::delete_by_id(row.id).exec(tx).await?;
        // Its deliveries are left to the purge: they are no longer accessible, and there may be many.
        cancel_pending(tx, row.id).await?;
        // Those about no grab are few, and could be made again and again with new endpoints.
        let about_no_grab = delivery::Column::GrabId.is_null().and(delivery::Column::EndpointId.eq(row.id));
        delivery::Entity::delete_many().filter(about_no_grab).exec(tx).await?;
        Ok(true)
    }
}

impl Transaction for KeepEndpoint {
    type Outcome = bool;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        let Some(row) = self.target.lock(tx, LockType::Update).await? else { return Ok(false) };
        let (user, _) = webhook_endpoint::creator(Creator::User);
        let kept = webhook_endpoint::Entity::update_many()
            .col_expr(webhook_endpoint::Column::Creator, Expr::value(user))
            .filter(webhook_endpoint::Column::Id.eq(row.id))
            .filter(webhook_endpoint::Column::Creator.is_null())
            .exec(tx)
            .await?;
        Ok(kept.rows_affected > 0)
    }
}

fn set<T: Into<sea_orm::Value>>(value: Option<T>) -> ActiveValue<T> {
    value.map_or(NotSet, Set)
}
