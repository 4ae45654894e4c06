//! An endpoint changes, gets a new secret, or goes.

use grabd_domain::Timestamp;
use grabd_domain::credentials::Environment;
use grabd_domain::ids::{EndpointId, TeamId};
use grabd_domain::webhooks::{Change, Disabled, Endpoint};
use sea_orm::ActiveValue::{self, NotSet, Set, Unchanged};
use sea_orm::sea_query::LockType;
use sea_orm::{ActiveModelTrait, ColumnTrait, EntityTrait, QueryFilter, QuerySelect};

use super::{disable, give_up};
use crate::database::{Transaction, Tx};
use crate::entities::webhook_endpoint::{self, Model, scoped, write_events};
use crate::{Result, Store};

/// Which endpoint a caller means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mine {
    /// The caller's team.
    pub team: TeamId,
    /// The caller's environment.
    pub environment: Environment,
    /// The endpoint.
    pub endpoint: EndpointId,
}

struct ChangeEndpoint {
    mine: Mine,
    change: Change,
}

struct Rotation {
    mine: Mine,
    secret: Vec<u8>,
    previous_until: Timestamp,
}

struct Removal {
    mine: Mine,
}

impl Store {
    /// Changes an endpoint, and answers it as it is then; `None` when the caller has no such endpoint. Disabling it
    /// cancels what it is owed; enabling it forgives what it has failed.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn change_endpoint(&self, mine: Mine, change: Change) -> Result<Option<Endpoint>> {
        self.database.write(ChangeEndpoint { mine, change }).await
    }

    /// Gives an endpoint a new secret, encrypted; the one it had signs too until `previous_until`. `None` when the caller
    /// has no such endpoint.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn rotate_secret(
        &self,
        mine: Mine,
        secret: Vec<u8>,
        previous_until: Timestamp,
    ) -> Result<Option<Endpoint>> {
        self.database.write(Rotation { mine, secret, previous_until }).await
    }

    /// Removes an endpoint and cancels what it is owed; `false` when the caller has no such endpoint.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn remove_endpoint(&self, mine: Mine) -> Result<bool> {
        self.database.write(Removal { mine }).await
    }
}

impl Mine {
    /// The row, locked: a finished grab that is about to owe it something waits, or is waited for.
    pub(super) async fn lock(&self, tx: &Tx, lock: LockType) -> Result<Option<Model>> {
        let mine = scoped(self.team, self.environment).filter(webhook_endpoint::Column::Id.eq(self.endpoint.0));
        Ok(mine.lock(lock).one(tx).await?)
    }
}

impl Transaction for ChangeEndpoint {
    type Outcome = Option<Endpoint>;

    async fn apply(&self, tx: &Tx) -> Result<Option<Endpoint>> {
        let Some(row) = self.mine.lock(tx, LockType::Update).await? else { return Ok(None) };
        let Change { url, events, description, enabled } = &self.change;
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
        if *enabled == Some(false) && disable(tx, row.id, Disabled::Requested).await? {
            row.disabled = Some(webhook_endpoint::disabled(Disabled::Requested));
        }
        webhook_endpoint::read(row).map(Some)
    }
}

impl Transaction for Rotation {
    type Outcome = Option<Endpoint>;

    async fn apply(&self, tx: &Tx) -> Result<Option<Endpoint>> {
        let Some(row) = self.mine.lock(tx, LockType::Update).await? else { return Ok(None) };
        let changed = webhook_endpoint::ActiveModel {
            id: Unchanged(row.id),
            secret: Set(self.secret.clone()),
            previous_secret: Set(Some(row.secret)),
            previous_until: Set(Some(self.previous_until.as_ms())),
            ..Default::default()
        };
        webhook_endpoint::read(changed.update(tx).await?).map(Some)
    }
}

impl Transaction for Removal {
    type Outcome = bool;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        let Some(row) = self.mine.lock(tx, LockType::Update).await? else { return Ok(false) };
        webhook_endpoint::Entity::delete_by_id(row.id).exec(tx).await?;
        // What was sent to it stays until it is old: nobody can ask for it any more, and there may be much of it.
        give_up(tx, row.id).await?;
        Ok(true)
    }
}

fn set<T: Into<sea_orm::Value>>(value: Option<T>) -> ActiveValue<T> {
    value.map_or(NotSet, Set)
}
