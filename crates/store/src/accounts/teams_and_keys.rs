//! Creates teams and API keys, revokes keys and records their use.

use grabd_domain::Timestamp;
use grabd_domain::accounts::KEY_TOUCH_INTERVAL;
use grabd_domain::credentials::{Environment, Scopes};
use grabd_domain::credits::{ALERT_BELOW, ALERT_STAGES};
use grabd_domain::ids::{KeyId, TeamId, UserId};
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Expr, ExprTrait, Func};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};

use crate::areas::Accounts;
use crate::audit::AuditEvent;
use crate::database::{Transaction, Tx};
use crate::entities::{api_key, team};
use crate::padded::padded;
use crate::{Result, codes};

/// A team to create.
#[derive(Clone, Debug)]
pub struct NewTeam {
    /// Its id.
    pub id: TeamId,
    /// Display name.
    pub name: String,
    /// Current time.
    pub now: Timestamp,
}

/// A key to create. Contains only a hash of the secret.
#[derive(Clone, Debug)]
pub struct NewKey {
    /// Its id.
    pub id: KeyId,
    /// The owning team.
    pub team: TeamId,
    /// The environment it gives access to.
    pub environment: Environment,
    /// Display name.
    pub name: String,
    /// SHA-256 of the whole key.
    pub hash: [u8; 32],
    /// The key's last four characters.
    pub last4: String,
    /// What it may be used for.
    pub scopes: Scopes,
    /// When it stops working; `None`: never.
    pub expires_at: Option<Timestamp>,
    /// The user who creates it; `None` for an operator's command.
    pub created_by: Option<UserId>,
    /// Current time.
    pub now: Timestamp,
}

struct RevokeKey {
    key: KeyId,
    now: Timestamp,
}

struct TouchKeys {
    keys: Vec<KeyId>,
    now: Timestamp,
}

impl Accounts<'_> {
    /// Creates an active team without credits or keys.
    ///
    /// # Errors
    /// [`Error::Constraint`](crate::Error::Constraint) when the id already exists.
    pub async fn create_team(self, team: NewTeam) -> Result<()> {
        let event = AuditEvent::new("team.create", &team.id, Some(team.id)).with(&team.name);
        self.store.write_audited(team, event, |()| true).await
    }

    /// Creates a key.
    ///
    /// # Errors
    /// [`Error::Constraint`](crate::Error::Constraint) when the team does not exist, or the id or the hash already
    /// exists.
    pub async fn create_key(self, key: NewKey) -> Result<()> {
        let event = AuditEvent::new("key.create", &key.id, Some(key.team)).with(&key.environment.as_str());
        self.store.write_audited(key, event, |()| true).await
    }

    /// Revokes a key permanently. `false` when no key has that id. A repeated call keeps the first revocation time.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn revoke_key(self, key: KeyId, now: Timestamp) -> Result<bool> {
        let event = AuditEvent::new("key.revoke", &key, None);
        self.store.write_audited(RevokeKey { key, now }, event, |revoked| *revoked).await
    }

    /// Records the use of these keys, at most once an hour for each. Callers batch uses and call this periodically.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn touch_keys(self, keys: Vec<KeyId>, now: Timestamp) -> Result<()> {
        if keys.is_empty() {
            return Ok(());
        }
        self.store.database.write(TouchKeys { keys, now }).await
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
            suspended_at: Set(None),
            suspended_reason: Set(None),
            deleted_at: Set(None),
            alert_below: Set(i32::try_from(ALERT_BELOW).unwrap_or(i32::MAX)),
            is_balance_low: Set(1),
            alert_stage: Set(i16::from(ALERT_STAGES)),
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
            link_secret: Set(None),
            link_secret_at: Set(None),
            scopes: Set(codes::scopes(self.scopes)),
            expires_at: Set(self.expires_at.map(Timestamp::as_ms)),
            created_by: Set(self.created_by.map(|user| user.0)),
        };
        api_key::Entity::insert(row).exec_without_returning(tx).await?;
        Ok(())
    }
}

impl Transaction for RevokeKey {
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

impl Transaction for TouchKeys {
    type Outcome = ();
    const KEEPS_ACCESS: bool = true;

    async fn apply(&self, tx: &Tx) -> Result<()> {
        // One write per key and hour, however often it is used.
        let earlier = Expr::col(api_key::Column::LastUsedAt)
            .is_null()
            .or(Expr::col(api_key::Column::LastUsedAt).lte((self.now - KEY_TOUCH_INTERVAL).as_ms()));
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
