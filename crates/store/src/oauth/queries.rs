//! OAuth clients, grants and access token authentication.

use std::collections::HashMap;

use grabd_domain::Timestamp;
use grabd_domain::credentials::{Caller, Environment, Principal};
use grabd_domain::ids::{GrantId, TeamId, UserId};
use grabd_domain::oauth::{ClientMetadata, OauthScopes, RedirectUri};
use grabd_domain::permissions::Permission;
use sea_orm::sea_query::{Expr, ExprTrait, Query};
use sea_orm::{ColumnTrait, EntityTrait, JoinType, QueryFilter, QueryOrder, QuerySelect, RelationTrait};
use uuid::Uuid;

use crate::areas::OAuth;
use crate::codes::{self, ACCESS, ACTIVE, SUSPENDED, read_time};
use crate::entities::{member, oauth_client, oauth_grant, oauth_token, team, user, webhook_endpoint};
use crate::padded::padded;
use crate::{Error, Result};

/// A registered app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// Its registration metadata.
    pub metadata: ClientMetadata,
    /// SHA-256 of its secret, if it has one.
    pub secret_hash: Option<[u8; 32]>,
}

/// The caller that an access token identifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenCaller {
    /// The caller.
    pub caller: Caller,
    /// What the token may be used for.
    pub scopes: OauthScopes,
    /// When the token or its grant expires.
    pub expires_at: Timestamp,
}

/// An app that a user has connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// The grant.
    pub grant: GrantId,
    /// Name of the app, as registered.
    pub client_name: String,
    /// Host of the app's client metadata document, if it has one.
    pub client_host: Option<String>,
    /// Name of the team it has access to.
    pub team_name: String,
    /// The environment it has access to.
    pub environment: Environment,
    /// When access was granted.
    pub created_at: Timestamp,
    /// Last use, accurate to a few seconds.
    pub last_used_at: Option<Timestamp>,
    /// What it may do.
    pub scopes: OauthScopes,
    /// How many webhooks it has created. They are deleted with the grant.
    pub webhooks: u32,
}

impl OAuth<'_> {
    /// The caller that the access token with this hash identifies. Ignores expired tokens and grants, inactive teams,
    /// suspended users, and grants of users whose role allows no apps. A change of the role ends those; this is for a grant that
    /// a process of an earlier version has created. One indexed read.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn authenticate_token(self, hash: &[u8; 32], now: Timestamp) -> Result<Option<TokenCaller>> {
        let of_grant = |column, own| Expr::col((member::Entity, column)).equals((oauth_grant::Entity, own));
        let permitted = Query::select()
            .expr(Expr::val(1))
            .from(member::Entity)
            .and_where(of_grant(member::Column::TeamId, oauth_grant::Column::TeamId))
            .and_where(of_grant(member::Column::UserId, oauth_grant::Column::UserId))
            .and_where(member::Column::Role.is_in(Permission::ConnectApps.roles().map(codes::role)))
            .take();
        let found: Option<(Uuid, Uuid, i16, i64, i64, i16, i16)> = oauth_token::Entity::find_by_id(hash.to_vec())
            .select_only()
            .columns([oauth_grant::Column::Id, oauth_grant::Column::TeamId, oauth_grant::Column::Env])
            .column(oauth_token::Column::ExpiresAt)
            .column(oauth_grant::Column::ExpiresAt)
            .column(oauth_token::Column::Scopes)
            .column(oauth_grant::Column::Scopes)
            .join(JoinType::InnerJoin, oauth_token::Relation::Grant.def())
            .join(JoinType::InnerJoin, oauth_grant::Relation::Team.def())
            .join(JoinType::InnerJoin, oauth_grant::Relation::User.def())
            .filter(oauth_token::Column::Kind.eq(ACCESS))
            .filter(oauth_token::Column::ExpiresAt.gt(now.as_ms()))
            .filter(oauth_grant::Column::ExpiresAt.gt(now.as_ms()))
            .filter(team::Column::Status.eq(ACTIVE))
            .filter(user::Column::SuspendedAt.is_null())
            .filter(Expr::exists(permitted))
            .into_tuple()
            .one(self.store.database.reader())
            .await?;
        let Some((grant, team, environment, token_expires_at, grant_expires_at, scopes, granted)) = found else {
            return Ok(None);
        };
        let environment = codes::read_environment(environment)?;
        let scopes = codes::read_oauth_scopes(scopes)?.and(codes::read_oauth_scopes(granted)?);
        Ok(scopes.map(|scopes| TokenCaller {
            caller: Caller { team: TeamId(team), environment, principal: Principal::Grant(GrantId(grant)) },
            scopes,
            expires_at: Timestamp::from_ms(token_expires_at.min(grant_expires_at)),
        }))
    }

    /// Whether the access token with this hash would identify a caller if its team were not suspended. One indexed
    /// read.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn is_token_suspended(self, hash: &[u8; 32], now: Timestamp) -> Result<bool> {
        let found: Option<Uuid> = oauth_token::Entity::find_by_id(hash.to_vec())
            .select_only()
            .column(oauth_grant::Column::Id)
            .join(JoinType::InnerJoin, oauth_token::Relation::Grant.def())
            .join(JoinType::InnerJoin, oauth_grant::Relation::Team.def())
            .filter(oauth_token::Column::Kind.eq(ACCESS))
            .filter(oauth_token::Column::ExpiresAt.gt(now.as_ms()))
            .filter(oauth_grant::Column::ExpiresAt.gt(now.as_ms()))
            .filter(team::Column::Status.eq(SUSPENDED))
            .into_tuple()
            .one(self.store.database.reader())
            .await?;
        Ok(found.is_some())
    }

    /// The app registered under this id.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn find_client(self, id: &str) -> Result<Option<Client>> {
        let found = oauth_client::Entity::find_by_id(id).one(self.store.database.reader()).await?;
        found.map(Client::try_from).transpose()
    }

    /// The apps a user has connected, newest first.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn list_connections(self, user: UserId, now: Timestamp) -> Result<Vec<Connection>> {
        let rows = oauth_grant::Entity::find()
            .find_also_related(team::Entity)
            .filter(oauth_grant::Column::UserId.eq(user.0))
            .filter(oauth_grant::Column::ConnectedAt.is_not_null())
            .filter(oauth_grant::Column::ExpiresAt.gt(now.as_ms()))
            .order_by_desc(oauth_grant::Column::CreatedAt)
            .order_by_desc(oauth_grant::Column::Id)
            .all(self.store.database.reader())
            .await?;
        let created: Vec<(Uuid, i64)> = webhook_endpoint::Entity::find()
            .select_only()
            .column(webhook_endpoint::Column::GrantId)
            .column_as(webhook_endpoint::Column::Id.count(), "webhooks")
            .filter(webhook_endpoint::Column::GrantId.is_in(padded(rows.iter().map(|(grant, _)| grant.id))))
            .group_by(webhook_endpoint::Column::GrantId)
            .into_tuple()
            .all(self.store.database.reader())
            .await?;
        let created: HashMap<Uuid, i64> = created.into_iter().collect();
        let read = |(grant, team): (oauth_grant::Model, Option<team::Model>)| {
            let team = team.ok_or(Error::Inconsistent("grant without a team"))?;
            Ok(Connection {
                grant: GrantId(grant.id),
                client_name: grant.client_name,
                client_host: grant.client_host,
                team_name: team.name,
                environment: codes::read_environment(grant.env)?,
                created_at: Timestamp::from_ms(grant.created_at),
                last_used_at: read_time(grant.last_used_at),
                scopes: codes::read_oauth_scopes(grant.scopes)?,
                webhooks: created.get(&grant.id).and_then(|count| u32::try_from(*count).ok()).unwrap_or(0),
            })
        };
        rows.into_iter().map(read).collect()
    }
}

impl TryFrom<oauth_client::Model> for Client {
    type Error = Error;

    fn try_from(row: oauth_client::Model) -> Result<Self> {
        let parse =
            |uri| RedirectUri::parse(uri).map_err(|_| Error::Inconsistent("client with an invalid redirect URI"));
        let hash = |hash: Vec<u8>| hash.try_into().map_err(|_| Error::Inconsistent("hash of the wrong length"));
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
