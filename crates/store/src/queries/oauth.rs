//! Apps, what they may do, and who stands behind their tokens.

use grabd_domain::Timestamp;
use grabd_domain::credentials::{Caller, Environment, Principal};
use grabd_domain::ids::{GrantId, TeamId, UserId};
use grabd_domain::oauth::{ClientMetadata, RedirectUri};
use sea_orm::{ColumnTrait, EntityTrait, JoinType, QueryFilter, QueryOrder, QuerySelect, RelationTrait};
use uuid::Uuid;

use crate::codes::{self, ACCESS, ACTIVE, read_time};
use crate::entities::{oauth_client, oauth_grant, oauth_token, team};
use crate::{Error, Result, Store};

/// An app that has registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// What it said of itself.
    pub metadata: ClientMetadata,
    /// SHA-256 of its secret, if it has one.
    pub secret_hash: Option<[u8; 32]>,
}

/// An app that a person has let act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// The grant.
    pub grant: GrantId,
    /// What the app called itself.
    pub client_name: String,
    /// Where it describes itself.
    pub client_host: Option<String>,
    /// For which team it acts,
    pub team_name: String,
    /// in which environment.
    pub environment: Environment,
    /// When it was allowed.
    pub created_at: Timestamp,
    /// When it last called, to within a few seconds.
    pub last_used_at: Option<Timestamp>,
}

impl Store {
    /// Who stands behind the access token with this hash: one indexed read. Only tokens and grants that are not over, of
    /// active teams.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn authenticate_token(&self, hash: &[u8; 32], now: Timestamp) -> Result<Option<Caller>> {
        let found: Option<(Uuid, Uuid, i16)> = oauth_token::Entity::find_by_id(hash.to_vec())
            .select_only()
            .columns([oauth_grant::Column::Id, oauth_grant::Column::TeamId, oauth_grant::Column::Env])
            .join(JoinType::InnerJoin, oauth_token::Relation::Grant.def())
            .join(JoinType::InnerJoin, oauth_grant::Relation::Team.def())
            .filter(oauth_token::Column::Kind.eq(ACCESS))
            .filter(oauth_token::Column::ExpiresAt.gt(now.as_ms()))
            .filter(oauth_grant::Column::ExpiresAt.gt(now.as_ms()))
            .filter(team::Column::Status.eq(ACTIVE))
            .into_tuple()
            .one(self.database.reader())
            .await?;
        let caller = |(grant, team, environment)| {
            let environment = codes::read_environment(environment)?;
            Ok(Caller { team: TeamId(team), environment, principal: Principal::Grant(GrantId(grant)) })
        };
        found.map(caller).transpose()
    }

    /// The app that has registered under this id.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn find_client(&self, id: &str) -> Result<Option<Client>> {
        let found = oauth_client::Entity::find_by_id(id).one(self.database.reader()).await?;
        found.map(Client::try_from).transpose()
    }

    /// The apps that a person lets act, the newest first.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn list_connections(&self, user: UserId, now: Timestamp) -> Result<Vec<Connection>> {
        let rows = oauth_grant::Entity::find()
            .find_also_related(team::Entity)
            .filter(oauth_grant::Column::UserId.eq(user.0))
            .filter(oauth_grant::Column::ConnectedAt.is_not_null())
            .filter(oauth_grant::Column::ExpiresAt.gt(now.as_ms()))
            .order_by_desc(oauth_grant::Column::CreatedAt)
            .order_by_desc(oauth_grant::Column::Id)
            .all(self.database.reader())
            .await?;
        let read = |(grant, team): (oauth_grant::Model, Option<team::Model>)| {
            let team = team.ok_or(Error::Inconsistent("a grant without a team"))?;
            Ok(Connection {
                grant: GrantId(grant.id),
                client_name: grant.client_name,
                client_host: grant.client_host,
                team_name: team.name,
                environment: codes::read_environment(grant.env)?,
                created_at: Timestamp::from_ms(grant.created_at),
                last_used_at: read_time(grant.last_used_at),
            })
        };
        rows.into_iter().map(read).collect()
    }
}

impl TryFrom<oauth_client::Model> for Client {
    type Error = Error;

    fn try_from(row: oauth_client::Model) -> Result<Self> {
        let parse = |uri| RedirectUri::parse(uri).map_err(|_| Error::Inconsistent("a client with a bad redirect URI"));
        let hash = |hash: Vec<u8>| hash.try_into().map_err(|_| Error::Inconsistent("a hash of another length"));
        Ok(Self {
            metadata: ClientMetadata {
                name: row.name,
                redirect_uris: row.redirect_uris.lines().map(parse).collect::<Result<_>>()?,
                auth_method: codes::read_auth_method(row.auth_method)?,
            },
            secret_hash: row.secret_hash.map(hash).transpose()?,
        })
    }
}
