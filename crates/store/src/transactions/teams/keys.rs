//! The people of a team make and revoke its keys.

use grabd_domain::Timestamp;
use grabd_domain::ids::{KeyId, TeamId, UserId};
use grabd_domain::teams::KEYS;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter};

use super::{Answered, Refusal, allowed, enter};
use crate::database::{Transaction, Tx};
use crate::entities::api_key;
use crate::transactions::accounts::NewKey;
use crate::{Result, Store};

struct Making {
    key: NewKey,
    by: UserId,
}

struct Revocation {
    team: TeamId,
    key: KeyId,
    by: UserId,
    now: Timestamp,
}

impl Store {
    /// Creates a key for somebody of its team.
    ///
    /// # Errors
    /// Only of the database; a refusal is an outcome.
    pub async fn make_key(&self, key: NewKey, by: UserId) -> Result<Answered> {
        self.database.write(Making { key, by }).await
    }

    /// Revokes a key of a team for somebody in it. One that is revoked already is unknown.
    ///
    /// # Errors
    /// Only of the database; a refusal is an outcome.
    pub async fn revoke_team_key(&self, team: TeamId, key: KeyId, by: UserId, now: Timestamp) -> Result<Answered> {
        self.database.write(Revocation { team, key, by, now }).await
    }
}

impl Transaction for Making {
    type Outcome = Answered;

    async fn apply(&self, tx: &Tx) -> Result<Answered> {
        allowed!(enter(tx, self.key.team, self.by));
        let open = api_key::Entity::find()
            .filter(api_key::Column::TeamId.eq(self.key.team.0))
            .filter(api_key::Column::RevokedAt.is_null());
        if open.count(tx).await? >= KEYS {
            return Ok(Err(Refusal::Full));
        }
        self.key.apply(tx).await?;
        Ok(Ok(()))
    }
}

impl Transaction for Revocation {
    type Outcome = Answered;

    async fn apply(&self, tx: &Tx) -> Result<Answered> {
        allowed!(enter(tx, self.team, self.by));
        let revoked = api_key::Entity::update_many()
            .col_expr(api_key::Column::RevokedAt, Expr::value(self.now.as_ms()))
            .filter(api_key::Column::Id.eq(self.key.0))
            .filter(api_key::Column::TeamId.eq(self.team.0))
            .filter(api_key::Column::RevokedAt.is_null())
            .exec(tx)
            .await?;
        Ok(if revoked.rows_affected > 0 { Ok(()) } else { Err(Refusal::Unknown) })
    }
}
