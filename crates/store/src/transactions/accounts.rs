//! Teams and keys come; keys are revoked and used.

use grabd_domain::Timestamp;
use grabd_domain::credentials::Environment;
use grabd_domain::ids::{KeyId, TeamId};
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Expr, ExprTrait, Func};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};

use crate::database::{Transaction, Tx};
use crate::entities::{api_key, team};
use crate::queries::padded;
use crate::{Result, Store, codes};

/// A team to create.
#[derive(Clone, Debug)]
pub struct NewTeam {
    /// Its id.
    pub id: TeamId,
    /// What people call it.
    pub name: String,
    /// When.
    pub now: Timestamp,
}

/// A key to create. The secret itself is never seen here.
#[derive(Clone, Debug)]
pub struct NewKey {
    /// Its id.
    pub id: KeyId,
    /// Whose it is.
    pub team: TeamId,
    /// Which world it opens.
    pub environment: Environment,
    /// What people call it.
    pub name: String,
    /// SHA-256 of the whole key.
    pub hash: [u8; 32],
    /// The key's last four characters.
    pub last4: String,
    /// When.
    pub now: Timestamp,
}

struct Revocation {
    key: KeyId,
    now: Timestamp,
}

struct Use {
    keys: Vec<KeyId>,
    now: Timestamp,
}

impl Store {
    /// Creates an active team without credits and keys.
    ///
    /// # Errors
    /// [`Error::Constraint`](crate::Error::Constraint) when the id is taken.
    pub async fn create_team(&self, team: NewTeam) -> Result<()> {
        self.database.write(team).await
    }

    /// Creates a key.
    ///
    /// # Errors
    /// [`Error::Constraint`](crate::Error::Constraint) when there is no such team, or the id or the hash is taken.
    pub async fn create_key(&self, key: NewKey) -> Result<()> {
        self.database.write(key).await
    }

    /// Revokes a key for good; `false` when there is none with that id. Repeating it keeps the first time.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn revoke_key(&self, key: KeyId, now: Timestamp) -> Result<bool> {
        self.database.write(Revocation { key, now }).await
    }

    /// Notes that these keys were used. Meant to be called for many uses at once, now and then.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn touch_keys(&self, keys: Vec<KeyId>, now: Timestamp) -> Result<()> {
        if keys.is_empty() {
            return Ok(());
        }
        self.database.write(Use { keys, now }).await
    }
}

impl Transaction for NewTeam {
    type Outcome = ();

    async fn apply(&self, tx: &Tx) -> Result<()> {
        let row = team::ActiveModel {
            id: Set(self.id.0),
            name: Set(self.name.clone()),
            status: Set(codes::ACTIVE),
            async_queue_limit: Set(None),
            created_at: Set(self.now.as_ms()),
        };
        team::Entity::insert(row).exec_without_returning(tx).await?;
        Ok(())
    }
}

impl Transaction for NewKey {
    type Outcome = ();

    async fn apply(&self, tx: &Tx) -> Result<()> {
        let row = api_key::ActiveModel {
            id: Set(self.id.0),
            team_id: Set(self.team.0),
            env: Set(codes::environment(self.environment)),
            name: Set(self.name.clone()),
            hash: Set(self.hash.to_vec()),
            last4: Set(self.last4.clone()),
            created_at: Set(self.now.as_ms()),
            revoked_at: Set(None),
            last_used_at: Set(None),
        };
        api_key::Entity::insert(row).exec_without_returning(tx).await?;
        Ok(())
    }
}

impl Transaction for Revocation {
    type Outcome = bool;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        let first = Func::coalesce([Expr::col(api_key::Column::RevokedAt), Expr::value(self.now.as_ms())]);
        let updated = api_key::Entity::update_many()
            .col_expr(api_key::Column::RevokedAt, first.into())
            .filter(api_key::Column::Id.eq(self.key.0))
            .exec(tx)
            .await?;
        Ok(updated.rows_affected > 0)
    }
}

impl Transaction for Use {
    type Outcome = ();

    async fn apply(&self, tx: &Tx) -> Result<()> {
        // Two processes may note uses out of order; the latest stays.
        let earlier = Expr::col(api_key::Column::LastUsedAt)
            .is_null()
            .or(Expr::col(api_key::Column::LastUsedAt).lt(self.now.as_ms()));
        for keys in self.keys.chunks(1024) {
            api_key::Entity::update_many()
                .col_expr(api_key::Column::LastUsedAt, Expr::value(self.now.as_ms()))
                .filter(api_key::Column::Id.is_in(padded(keys.iter().map(|key| key.0))))
                .filter(earlier.clone())
                .exec(tx)
                .await?;
        }
        Ok(())
    }
}
