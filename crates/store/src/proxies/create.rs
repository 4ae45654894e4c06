//! Creates proxies.

use grabd_domain::Timestamp;
use grabd_domain::credentials::{Environment, Principal};
use grabd_domain::ids::{ProxyId, TeamId};
use grabd_domain::proxies::{MAX_PROXIES, Proxy, ProxyUrl};
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::LockType;
use sea_orm::{EntityTrait, PaginatorTrait, QuerySelect};

use crate::areas::Proxies;
use crate::audit::AuditEvent;
use crate::database::{Transaction, Tx};
use crate::entities::oauth_grant;
use crate::entities::proxy::{self, of_team};
use crate::team_lock::lock_team;
use crate::{Result, codes};

/// A proxy to create.
#[derive(Clone, Debug)]
pub struct NewProxyRow {
    /// Its id.
    pub id: ProxyId,
    /// The owning team.
    pub team: TeamId,
    /// The environment whose captures can use it.
    pub environment: Environment,
    /// Who creates it.
    pub creator: Principal,
    /// Its name.
    pub name: String,
    /// Where it is.
    pub url: ProxyUrl,
    /// User name and password, encrypted.
    pub login: Option<Vec<u8>>,
    /// Current time.
    pub now: Timestamp,
}

/// Outcome of creating a proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CreateProxyOutcome {
    /// It was created.
    Created(Box<Proxy>),
    /// Nothing was created: the team has [`MAX_PROXIES`] in this environment.
    TooMany,
    /// Nothing was created: the team does not exist or is inactive.
    TeamInactive,
    /// Nothing was created: the grant of the app has just ended.
    AccessEnded,
}

impl Proxies<'_> {
    /// Creates a proxy.
    ///
    /// # Errors
    /// Database errors only; a rejected change is an outcome.
    pub async fn create(self, new: NewProxyRow) -> Result<CreateProxyOutcome> {
        let event = AuditEvent::new("proxy.create", &new.id, Some(new.team)).with(&new.name);
        let created = |outcome: &CreateProxyOutcome| matches!(outcome, CreateProxyOutcome::Created(_));
        self.store.write_audited(new, event, created).await
    }
}

impl Transaction for NewProxyRow {
    type Outcome = CreateProxyOutcome;
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<CreateProxyOutcome> {
        // The lock makes the count exact under concurrent creates.
        if lock_team(tx, self.team).await?.is_none() {
            return Ok(CreateProxyOutcome::TeamInactive);
        }
        if of_team(self.team, self.environment).count(tx).await? >= MAX_PROXIES {
            return Ok(CreateProxyOutcome::TooMany);
        }
        let grant = self.creator.grant();
        if let Some(grant) = grant {
            // The lock conflicts with the end of the grant, which deletes the proxy.
            let grant = oauth_grant::Entity::find_by_id(grant.0).lock(LockType::KeyShare);
            if grant.one(tx).await?.is_none() {
                return Ok(CreateProxyOutcome::AccessEnded);
            }
        }
        let row = proxy::Model {
            id: self.id.0,
            team_id: self.team.0,
            env: codes::environment(self.environment),
            grant_id: grant.map(|grant| grant.0),
            name: self.name.clone(),
            url: self.url.to_string(),
            login: self.login.clone(),
            created_at: self.now.as_ms(),
            updated_at: self.now.as_ms(),
            last_used_at: None,
            last_error: None,
            last_error_at: None,
        };
        let created = proxy::read(&row)?;
        let row = proxy::ActiveModel {
            id: Set(row.id),
            team_id: Set(row.team_id),
            env: Set(row.env),
            grant_id: Set(row.grant_id),
            name: Set(row.name),
            url: Set(row.url),
            login: Set(row.login),
            created_at: Set(row.created_at),
            updated_at: Set(row.updated_at),
            last_used_at: Set(None),
            last_error: Set(None),
            last_error_at: Set(None),
        };
        proxy::Entity::insert(row).exec_without_returning(tx).await?;
        Ok(CreateProxyOutcome::Created(Box::new(created)))
    }
}
