//! Teams and keys, and who stands behind a key.

use grabd_domain::Timestamp;
use grabd_domain::credentials::{Caller, Environment, Principal};
use grabd_domain::ids::{KeyId, TeamId};
use sea_orm::{ColumnTrait, EntityTrait, JoinType, QueryFilter, QueryOrder, QuerySelect, RelationTrait};
use uuid::Uuid;

use crate::codes::{self, ACTIVE, read_time};
use crate::entities::{api_key, team};
use crate::{Result, Store};

/// A team.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Team {
    /// Its id.
    pub id: TeamId,
    /// What people call it.
    pub name: String,
    /// `active` or `inactive`.
    pub status: &'static str,
    /// Since when there is one.
    pub created_at: Timestamp,
}

/// A key, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its id.
    pub id: KeyId,
    /// Which world it opens.
    pub environment: Environment,
    /// What people call it.
    pub name: String,
    /// Its last four characters.
    pub last4: String,
    /// Since when there is one.
    pub created_at: Timestamp,
    /// When it was last used, to within a few seconds.
    pub last_used_at: Option<Timestamp>,
    /// Since when it opens nothing.
    pub revoked_at: Option<Timestamp>,
}

impl Store {
    /// Who stands behind the key with this hash: one indexed read. Only keys that are not revoked, of active teams.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn authenticate(&self, hash: &[u8; 32]) -> Result<Option<Caller>> {
        let found: Option<(Uuid, Uuid, i16)> = api_key::Entity::find()
            .select_only()
            .columns([api_key::Column::Id, api_key::Column::TeamId, api_key::Column::Env])
            .join(JoinType::InnerJoin, api_key::Relation::Team.def())
            .filter(api_key::Column::Hash.eq(hash.to_vec()))
            .filter(api_key::Column::RevokedAt.is_null())
            .filter(team::Column::Status.eq(ACTIVE))
            .into_tuple()
            .one(self.database.reader())
            .await?;
        let caller = |(key, team, environment)| {
            let environment = codes::read_environment(environment)?;
            Ok(Caller { team: TeamId(team), environment, principal: Principal::Key(KeyId(key)) })
        };
        found.map(caller).transpose()
    }

    /// The team with this id.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn find_team(&self, id: TeamId) -> Result<Option<Team>> {
        Ok(team::Entity::find_by_id(id.0).one(self.database.reader()).await?.map(Team::from))
    }

    /// Every team, the oldest first.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn list_teams(&self) -> Result<Vec<Team>> {
        let oldest_first = team::Entity::find().order_by_asc(team::Column::CreatedAt).order_by_asc(team::Column::Id);
        Ok(oldest_first.all(self.database.reader()).await?.into_iter().map(Team::from).collect())
    }

    /// Every key of a team, revoked ones too, the oldest first.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn list_keys(&self, team: TeamId) -> Result<Vec<Key>> {
        let keys = api_key::Entity::find()
            .filter(api_key::Column::TeamId.eq(team.0))
            .order_by_asc(api_key::Column::CreatedAt)
            .order_by_asc(api_key::Column::Id)
            .all(self.database.reader())
            .await?;
        keys.into_iter().map(Key::try_from).collect()
    }
}

impl From<team::Model> for Team {
    fn from(row: team::Model) -> Self {
        let team::Model { id, name, status, async_queue_limit: _, created_at } = row;
        let status = if status == ACTIVE { "active" } else { "inactive" };
        Self { id: TeamId(id), name, status, created_at: Timestamp::from_ms(created_at) }
    }
}

impl TryFrom<api_key::Model> for Key {
    type Error = crate::Error;

    fn try_from(row: api_key::Model) -> Result<Self> {
        let api_key::Model { id, team_id: _, env, name, hash: _, last4, created_at, revoked_at, last_used_at } = row;
        Ok(Self {
            id: KeyId(id),
            environment: codes::read_environment(env)?,
            name,
            last4,
            created_at: Timestamp::from_ms(created_at),
            last_used_at: read_time(last_used_at),
            revoked_at: read_time(revoked_at),
        })
    }
}
