//! Teams, API keys and API key authentication.

use grabd_domain::Timestamp;
use grabd_domain::credentials::{Caller, Environment, Principal, Scopes};
use grabd_domain::ids::{KeyId, TeamId, UserId};
use sea_orm::sea_query::{Expr, ExprTrait, Query};
use sea_orm::{ColumnTrait, EntityTrait, JoinType, QueryFilter, QueryOrder, QuerySelect, RelationTrait};
use uuid::Uuid;

use crate::Result;
use crate::areas::Accounts;
use crate::codes::{self, ACTIVE, SUSPENDED, read_time};
use crate::entities::{api_key, member, team};

/// A team.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Team {
    /// Its id.
    pub id: TeamId,
    /// Display name.
    pub name: String,
    /// `active` or `inactive`.
    pub status: &'static str,
    /// Creation time.
    pub created_at: Timestamp,
    /// Its suspension, if it is suspended.
    pub suspension: Option<Suspension>,
    /// When it was deleted. Only its ledger remains.
    pub deleted_at: Option<Timestamp>,
}

/// The suspension of a team or of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspension {
    /// Since when.
    pub at: Timestamp,
    /// Why, for operators.
    pub reason: String,
}

/// An API key, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its id.
    pub id: KeyId,
    /// The environment it gives access to.
    pub environment: Environment,
    /// Display name.
    pub name: String,
    /// The last four characters of the key.
    pub last4: String,
    /// Creation time.
    pub created_at: Timestamp,
    /// Last use, accurate to an hour.
    pub last_used_at: Option<Timestamp>,
    /// Time of the revocation.
    pub revoked_at: Option<Timestamp>,
    /// What it may be used for.
    pub scopes: Scopes,
    /// When it stops working; `None`: never.
    pub expires_at: Option<Timestamp>,
    /// The user who created it. `None`: an operator's command, an earlier version, or a deleted account.
    pub created_by: Option<UserId>,
}

/// The caller that an API key identifies, and what the key may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyCaller {
    /// The caller.
    pub caller: Caller,
    /// What the key may be used for.
    pub scopes: Scopes,
    /// When it stops working; `None`: never. The key may have expired already.
    pub expires_at: Option<Timestamp>,
}

impl Accounts<'_> {
    /// The caller that the key with this hash identifies. Ignores revoked keys and keys of inactive teams, but not
    /// expired keys, whose refusal says so. One indexed read.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn authenticate(self, hash: &[u8; 32]) -> Result<Option<KeyCaller>> {
        let found: Option<(Uuid, Uuid, i16, i16, Option<i64>)> = api_key::Entity::find()
            .select_only()
            .columns([
                api_key::Column::Id,
                api_key::Column::TeamId,
                api_key::Column::Env,
                api_key::Column::Scopes,
                api_key::Column::ExpiresAt,
            ])
            .join(JoinType::InnerJoin, api_key::Relation::Team.def())
            .filter(api_key::Column::Hash.eq(hash.to_vec()))
            .filter(api_key::Column::RevokedAt.is_null())
            .filter(team::Column::Status.eq(ACTIVE))
            .into_tuple()
            .one(self.store.database.reader())
            .await?;
        let caller = |(key, team, environment, scopes, expires_at)| {
            let environment = codes::read_environment(environment)?;
            let caller = Caller { team: TeamId(team), environment, principal: Principal::Key(KeyId(key)) };
            Ok(KeyCaller { caller, scopes: codes::read_scopes(scopes)?, expires_at: read_time(expires_at) })
        };
        found.map(caller).transpose()
    }

    /// Whether the key with this hash would identify a caller if its team were not suspended. One indexed read.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn is_key_suspended(self, hash: &[u8; 32]) -> Result<bool> {
        let found: Option<Uuid> = api_key::Entity::find()
            .select_only()
            .column(api_key::Column::Id)
            .join(JoinType::InnerJoin, api_key::Relation::Team.def())
            .filter(api_key::Column::Hash.eq(hash.to_vec()))
            .filter(api_key::Column::RevokedAt.is_null())
            .filter(team::Column::Status.eq(SUSPENDED))
            .into_tuple()
            .one(self.store.database.reader())
            .await?;
        Ok(found.is_some())
    }

    /// The team with this id.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn find_team(self, id: TeamId) -> Result<Option<Team>> {
        Ok(team::Entity::find_by_id(id.0).one(self.store.database.reader()).await?.map(Team::from))
    }

    /// All teams, oldest first.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn list_teams(self) -> Result<Vec<Team>> {
        let oldest_first = team::Entity::find().order_by_asc(team::Column::CreatedAt).order_by_asc(team::Column::Id);
        Ok(oldest_first.all(self.store.database.reader()).await?.into_iter().map(Team::from).collect())
    }

    /// Up to `limit` active teams without members, oldest first.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn list_teams_without_members(self, limit: u64) -> Result<Vec<Team>> {
        let members = Query::select()
            .expr(Expr::val(1))
            .from(member::Entity)
            .and_where(Expr::col((member::Entity, member::Column::TeamId)).equals((team::Entity, team::Column::Id)))
            .take();
        let teams = team::Entity::find()
            .filter(team::Column::Status.eq(ACTIVE))
            .filter(Expr::exists(members).not())
            .order_by_asc(team::Column::CreatedAt)
            .order_by_asc(team::Column::Id)
            .limit(limit);
        Ok(teams.all(self.store.database.reader()).await?.into_iter().map(Team::from).collect())
    }

    /// All keys of a team, including revoked ones, oldest first.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn list_keys(self, team: TeamId) -> Result<Vec<Key>> {
        let keys = api_key::Entity::find()
            .filter(api_key::Column::TeamId.eq(team.0))
            .order_by_asc(api_key::Column::CreatedAt)
            .order_by_asc(api_key::Column::Id)
            .all(self.store.database.reader())
            .await?;
        keys.into_iter().map(Key::try_from).collect()
    }
}

impl From<team::Model> for Team {
    fn from(row: team::Model) -> Self {
        let team::Model {
            id,
            name,
            status,
            async_queue_limit: _,
            created_at,
            suspended_at,
            suspended_reason,
            deleted_at,
            alert_below: _,
            is_balance_low: _,
            alert_stage: _,
        } = row;
        let suspension = suspended_at
            .map(|at| Suspension { at: Timestamp::from_ms(at), reason: suspended_reason.unwrap_or_default() });
        let status = if status == ACTIVE { "active" } else { "inactive" };
        let created_at = Timestamp::from_ms(created_at);
        Self { id: TeamId(id), name, status, created_at, suspension, deleted_at: read_time(deleted_at) }
    }
}

impl TryFrom<api_key::Model> for Key {
    type Error = crate::Error;

    fn try_from(row: api_key::Model) -> Result<Self> {
        let api_key::Model {
            id,
            team_id: _,
            env,
            name,
            hash: _,
            last4,
            created_at,
            revoked_at,
            last_used_at,
            link_secret: _,
            link_secret_at: _,
            scopes,
            expires_at,
            created_by,
        } = row;
        Ok(Self {
            id: KeyId(id),
            environment: codes::read_environment(env)?,
            name,
            last4,
            created_at: Timestamp::from_ms(created_at),
            last_used_at: read_time(last_used_at),
            revoked_at: read_time(revoked_at),
            scopes: codes::read_scopes(scopes)?,
            expires_at: read_time(expires_at),
            created_by: created_by.map(UserId),
        })
    }
}
