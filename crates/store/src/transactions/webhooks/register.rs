//! An endpoint comes.

use grabd_domain::Timestamp;
use grabd_domain::credentials::Environment;
use grabd_domain::ids::{EndpointId, TeamId};
use grabd_domain::webhooks::{Endpoint, MAX_ENDPOINTS, Registration};
use sea_orm::ActiveValue::Set;
use sea_orm::{EntityTrait, PaginatorTrait};

use crate::database::{Transaction, Tx};
use crate::entities::webhook_endpoint::{self, scoped, write_events};
use crate::transactions::create::lock_team;
use crate::{Result, Store, codes};

/// An endpoint to register.
#[derive(Clone, Debug)]
pub struct NewEndpoint {
    /// Its id.
    pub id: EndpointId,
    /// Whose it is.
    pub team: TeamId,
    /// Grabs of which environment it hears of.
    pub environment: Environment,
    /// Where to, and what of.
    pub registration: Registration,
    /// Its secret, encrypted.
    pub secret: Vec<u8>,
    /// When.
    pub now: Timestamp,
}

/// What registering came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Registered {
    /// It gets messages from now on.
    Yes(Box<Endpoint>),
    /// Nothing was registered: the team has as many in this environment as it may have.
    TooMany,
    /// Nothing was registered: there is no such team, or it may not act.
    TeamInactive,
}

impl Store {
    /// Registers an endpoint.
    ///
    /// # Errors
    /// Only of the database; a refusal is an outcome.
    pub async fn register_endpoint(&self, new: NewEndpoint) -> Result<Registered> {
        self.database.write(new).await
    }
}

impl Transaction for NewEndpoint {
    type Outcome = Registered;

    async fn apply(&self, tx: &Tx) -> Result<Registered> {
        // The lock makes the count exact: of two that come at once, the second counts the first.
        if lock_team(tx, self.team).await?.is_none() {
            return Ok(Registered::TeamInactive);
        }
        if scoped(self.team, self.environment).count(tx).await? >= u64::from(MAX_ENDPOINTS) {
            return Ok(Registered::TooMany);
        }
        let Registration { url, events, description } = &self.registration;
        let row = webhook_endpoint::ActiveModel {
            id: Set(self.id.0),
            team_id: Set(self.team.0),
            env: Set(codes::environment(self.environment)),
            url: Set(url.to_string()),
            events: Set(write_events(events)),
            description: Set(description.clone()),
            disabled: Set(None),
            failing_since: Set(None),
            secret: Set(self.secret.clone()),
            previous_secret: Set(None),
            previous_until: Set(None),
            created_at: Set(self.now.as_ms()),
        };
        webhook_endpoint::Entity::insert(row).exec_without_returning(tx).await?;
        Ok(Registered::Yes(Box::new(Endpoint {
            id: self.id,
            team: self.team,
            environment: self.environment,
            url: url.clone(),
            events: events.clone(),
            description: description.clone(),
            disabled: None,
            created_at: self.now,
        })))
    }
}
