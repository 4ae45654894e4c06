//! Creates and revokes API keys on behalf of team members.

use grabd_domain::Timestamp;
use grabd_domain::ids::{KeyId, TeamId, UserId};
use grabd_domain::permissions::Permission;
use grabd_domain::team_limits::TeamLimit;
use grabd_domain::teams::KEYS;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, Condition, EntityTrait, PaginatorTrait, QueryFilter};

use super::{TeamResult, TeamRuleError, allowed, lock_as_permitted};
use crate::Result;
use crate::accounts::teams_and_keys::NewKey;
use crate::areas::Accounts;
use crate::audit::AuditEvent;
use crate::database::{Transaction, Tx};
use crate::entities::api_key;
use crate::limits::limit_of;

struct CreateKey {
    key: NewKey,
    by: UserId,
}

struct RevokeKey {
    team: TeamId,
    key: KeyId,
    by: UserId,
    now: Timestamp,
}

impl Accounts<'_> {
    /// Creates a key on behalf of a member of its team.
    ///
    /// # Errors
    /// Database errors only; a rejected change is an outcome.
    pub async fn create_team_key(self, key: NewKey, by: UserId) -> Result<TeamResult> {
        let event = AuditEvent::new("key.create", &key.id, Some(key.team)).with(&key.environment.as_str());
        self.store.write_audited(CreateKey { key, by }, event, TeamResult::is_ok).await
    }

    /// Revokes a key on behalf of a member of its team. A key that is already revoked is not found.
    ///
    /// # Errors
    /// Database errors only; a rejected change is an outcome.
    pub async fn revoke_team_key(self, team: TeamId, key: KeyId, by: UserId, now: Timestamp) -> Result<TeamResult> {
        let event = AuditEvent::new("key.revoke", &key, Some(team));
        self.store.write_audited(RevokeKey { team, key, by, now }, event, TeamResult::is_ok).await
    }
}

impl Transaction for CreateKey {
    type Outcome = TeamResult;

    async fn apply(&self, tx: &Tx) -> Result<TeamResult> {
        allowed!(lock_as_permitted(tx, self.key.team, self.by, Permission::ManageKeys));
        let works = Condition::any()
            .add(api_key::Column::ExpiresAt.is_null())
            .add(api_key::Column::ExpiresAt.gt(self.key.now.as_ms()));
        let open = api_key::Entity::find()
            .filter(api_key::Column::TeamId.eq(self.key.team.0))
            .filter(api_key::Column::RevokedAt.is_null())
            .filter(works);
        if open.count(tx).await? >= limit_of(tx, self.key.team, TeamLimit::Keys, KEYS).await? {
            return Ok(Err(TeamRuleError::LimitReached));
        }
        self.key.apply(tx).await?;
        Ok(Ok(()))
    }
}

impl Transaction for RevokeKey {
    type Outcome = TeamResult;

    async fn apply(&self, tx: &Tx) -> Result<TeamResult> {
        allowed!(lock_as_permitted(tx, self.team, self.by, Permission::ManageKeys));
        let revoked = api_key::Entity::update_many()
            .col_expr(api_key::Column::RevokedAt, Expr::value(self.now.as_ms()))
            .filter(api_key::Column::Id.eq(self.key.0))
            .filter(api_key::Column::TeamId.eq(self.team.0))
            .filter(api_key::Column::RevokedAt.is_null())
            .exec(tx)
            .await?;
        Ok(if revoked.rows_affected > 0 { Ok(()) } else { Err(TeamRuleError::NotFound) })
    }
}
