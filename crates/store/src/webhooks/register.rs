//! Registers webhook endpoints.

use grabd_domain::Timestamp;
use grabd_domain::credentials::Environment;
use grabd_domain::ids::{EndpointId, TeamId, UserId};
use grabd_domain::team_limits::TeamLimit;
use grabd_domain::webhooks::{Creator, Endpoint, MAX_ENDPOINTS, Registration};
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::LockType;
use sea_orm::{EntityTrait, PaginatorTrait, QuerySelect};

use crate::areas::Webhooks;
use crate::database::{Transaction, Tx};
use crate::entities::oauth_grant;
use crate::entities::webhook_endpoint::{self, of_team, write_events};
use crate::limits::limit_of;
use crate::team_lock::lock_team;
use crate::{Result, codes};

/// An endpoint to register.
#[derive(Clone, Debug)]
pub struct NewEndpoint {
    /// Its id.
    pub id: EndpointId,
    /// The owning team.
    pub team: TeamId,
    /// The environment whose grabs it receives.
    pub environment: Environment,
    /// URL, events and description.
    pub registration: Registration,
    /// Its secret, encrypted.
    pub secret: Vec<u8>,
    /// Who creates it.
    pub creator: Creator,
    /// The user to whom the secret is shown; `None` for an API key or an app.
    pub by: Option<UserId>,
    /// Current time.
    pub now: Timestamp,
}

/// Outcome of a registration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegisterOutcome {
    /// The endpoint was registered.
    Registered(Box<Endpoint>),
    /// Nothing was registered: the team has reached the limit in this environment.
    TooMany {
        /// The limit.
        limit: u64,
    },
    /// Nothing was registered: the team does not exist or is inactive.
    TeamInactive,
    /// Nothing was registered: the grant of the app has just ended.
    AccessEnded,
}

impl Webhooks<'_> {
    /// Registers an endpoint.
    ///
    /// # Errors
    /// Database errors only; a rejected change is an outcome.
    pub async fn register_endpoint(self, new: NewEndpoint) -> Result<RegisterOutcome> {
        self.store.database.write(new).await
    }
}

impl Transaction for NewEndpoint {
    type Outcome = RegisterOutcome;

    async fn apply(&self, tx: &Tx) -> Result<RegisterOutcome> {
        // The lock makes the count exact under concurrent registrations.
        if lock_team(tx, self.team).await?.is_none() {
            return Ok(RegisterOutcome::TeamInactive);
        }
        let limit = limit_of(tx, self.team, TeamLimit::Webhooks, MAX_ENDPOINTS.into()).await?;
        if of_team(self.team, self.environment).count(tx).await? >= limit {
            return Ok(RegisterOutcome::TooMany { limit });
        }
        let (creator, grant) = webhook_endpoint::creator(self.creator);
        if let Some(grant) = grant {
            // The lock conflicts with the end of the grant, which deletes the endpoint.
            let grant = oauth_grant::Entity::find_by_id(grant).lock(LockType::KeyShare);
            if grant.one(tx).await?.is_none() {
                return Ok(RegisterOutcome::AccessEnded);
            }
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
            grant_id: Set(grant),
            creator: Set(Some(creator)),
            secret_at: Set(Some(self.now.as_ms())),
            secret_by: Set(self.by.map(|user| user.0)),
        };
        webhook_endpoint::Entity::insert(row).exec_without_returning(tx).await?;
        Ok(RegisterOutcome::Registered(Box::new(Endpoint {
            id: self.id,
            team: self.team,
            environment: self.environment,
            url: url.clone(),
            events: events.clone(),
            description: description.clone(),
            disabled: None,
            created_at: self.now,
            creator: Some(self.creator),
        })))
    }
}
