//! Password changes and resets, which end other sessions.

use grabd_domain::Timestamp;
use grabd_domain::ids::UserId;
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait};

use crate::Result;
use crate::accounts::verification;
use crate::areas::Accounts;
use crate::database::{Transaction, Tx};
use crate::entities::{device, email_verification, invitation, password_reset, session, user};

/// A password change by a user who knows the current password.
#[derive(Clone)]
pub struct PasswordChange {
    /// The user.
    pub user: UserId,
    /// The hash that the current password was verified against.
    pub former_hash: String,
    /// Hash of the new password.
    pub password_hash: String,
    /// The session to keep.
    pub keep: [u8; 32],
}

struct NewReset {
    hash: [u8; 32],
    user: UserId,
    expires_at: Timestamp,
}

struct ResetPassword {
    hash: [u8; 32],
    password_hash: String,
    now: Timestamp,
}

/// Ends all sessions of a user except one.
pub(super) struct EndSessions {
    pub(super) user: UserId,
    pub(super) keep: [u8; 32],
}

struct EndSession {
    user: UserId,
    hash: [u8; 32],
}

struct SetSessionAgent {
    hash: [u8; 32],
    agent: String,
}

struct PurgeLinks {
    now: Timestamp,
    limit: u32,
}

impl Accounts<'_> {
    /// Changes a password, ends all other sessions and deletes all reset tokens. `false`, without any change, when the
    /// password was changed concurrently.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn change_password(self, change: PasswordChange) -> Result<bool> {
        self.store.database.write(change).await
    }

    /// Stores the hash of a password reset token.
    ///
    /// # Errors
    /// [`Error::Constraint`](crate::Error::Constraint) when the user does not exist.
    pub async fn create_password_reset(self, hash: [u8; 32], user: UserId, expires_at: Timestamp) -> Result<()> {
        self.store.database.write(NewReset { hash, user, expires_at }).await
    }

    /// Consumes the reset token, sets the password, ends all sessions, forgets all devices and returns the user. If
    /// the address was not verified, it is now, and all access that was given before is void. `None`, without any
    /// change, when the token was used or has expired.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn reset_password(self, hash: [u8; 32], password_hash: String, now: Timestamp) -> Result<Option<UserId>> {
        self.store.database.write(ResetPassword { hash, password_hash, now }).await
    }

    /// Ends all sessions of a user except one and returns the number of ended sessions.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn end_other_sessions(self, user: UserId, keep: [u8; 32]) -> Result<u64> {
        self.store.database.write(EndSessions { user, keep }).await
    }

    /// Ends a session of this user. `false` when the user has no session with that hash.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn end_session(self, user: UserId, hash: [u8; 32]) -> Result<bool> {
        self.store.database.write(EndSession { user, hash }).await
    }

    /// Stores the `User-Agent` of a session's browser.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn set_session_agent(self, hash: [u8; 32], agent: String) -> Result<()> {
        self.store.database.write(SetSessionAgent { hash, agent }).await
    }

    /// Deletes up to `limit` expired invitations, and as many expired resets and verifications. Returns the number of
    /// deleted rows.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn purge_email_tokens(self, now: Timestamp, limit: u32) -> Result<u64> {
        self.store.database.write(PurgeLinks { now, limit }).await
    }
}

impl Transaction for PasswordChange {
    type Outcome = bool;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        let changed = user::Entity::update_many()
            .col_expr(user::Column::PasswordHash, Expr::value(self.password_hash.clone()))
            .filter(user::Column::Id.eq(self.user.0))
            .filter(user::Column::PasswordHash.eq(self.former_hash.clone()))
            .exec(tx)
            .await?;
        if changed.rows_affected == 0 {
            return Ok(false);
        }
        EndSessions { user: self.user, keep: self.keep }.apply(tx).await?;
        delete_resets(tx, self.user).await?;
        Ok(true)
    }
}

impl Transaction for NewReset {
    type Outcome = ();

    async fn apply(&self, tx: &Tx) -> Result<()> {
        let row = password_reset::ActiveModel {
            hash: Set(self.hash.to_vec()),
            user_id: Set(self.user.0),
            expires_at: Set(self.expires_at.as_ms()),
        };
        password_reset::Entity::insert(row).exec_without_returning(tx).await?;
        Ok(())
    }
}

impl Transaction for ResetPassword {
    type Outcome = Option<UserId>;

    async fn apply(&self, tx: &Tx) -> Result<Option<UserId>> {
        let taken = password_reset::Entity::delete_many()
            .filter(password_reset::Column::Hash.eq(self.hash.to_vec()))
            .filter(password_reset::Column::ExpiresAt.gt(self.now.as_ms()))
            .exec_with_returning(tx)
            .await?;
        let Some(reset) = taken.into_iter().next() else { return Ok(None) };
        let user = UserId(reset.user_id);
        let unverified = user::Entity::find_by_id(user.0).filter(user::Column::VerifiedAt.is_null()).one(tx).await?;
        if unverified.is_some() {
            verification::take_over(tx, user, &self.password_hash, self.now).await?;
            return Ok(Some(user));
        }
        user::Entity::update_many()
            .col_expr(user::Column::PasswordHash, Expr::value(self.password_hash.clone()))
            .filter(user::Column::Id.eq(user.0))
            .exec(tx)
            .await?;
        session::Entity::delete_many().filter(session::Column::UserId.eq(user.0)).exec(tx).await?;
        device::Entity::delete_many().filter(device::Column::UserId.eq(user.0)).exec(tx).await?;
        delete_resets(tx, user).await?;
        Ok(Some(user))
    }
}

async fn delete_resets(tx: &Tx, user: UserId) -> Result<()> {
    password_reset::Entity::delete_many().filter(password_reset::Column::UserId.eq(user.0)).exec(tx).await?;
    Ok(())
}

impl Transaction for EndSessions {
    type Outcome = u64;

    async fn apply(&self, tx: &Tx) -> Result<u64> {
        let ended = session::Entity::delete_many()
            .filter(session::Column::UserId.eq(self.user.0))
            .filter(Expr::col(session::Column::Hash).ne(self.keep.to_vec()))
            .exec(tx)
            .await?;
        Ok(ended.rows_affected)
    }
}

impl Transaction for EndSession {
    type Outcome = bool;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        let ended = session::Entity::delete_many()
            .filter(session::Column::UserId.eq(self.user.0))
            .filter(session::Column::Hash.eq(self.hash.to_vec()))
            .exec(tx)
            .await?;
        Ok(ended.rows_affected > 0)
    }
}

impl Transaction for SetSessionAgent {
    type Outcome = ();

    async fn apply(&self, tx: &Tx) -> Result<()> {
        session::Entity::update_many()
            .col_expr(session::Column::Agent, Expr::value(self.agent.clone()))
            .filter(session::Column::Hash.eq(self.hash.to_vec()))
            .exec(tx)
            .await?;
        Ok(())
    }
}

impl Transaction for PurgeLinks {
    type Outcome = u64;

    async fn apply(&self, tx: &Tx) -> Result<u64> {
        let expired = invitation::Entity::find()
            .select_only()
            .column(invitation::Column::Id)
            .filter(invitation::Column::ExpiresAt.lte(self.now.as_ms()))
            .order_by_asc(invitation::Column::ExpiresAt)
            .limit(u64::from(self.limit))
            .into_query();
        let invitations =
            invitation::Entity::delete_many().filter(invitation::Column::Id.in_subquery(expired)).exec(tx).await?;
        let expired = password_reset::Entity::find()
            .select_only()
            .column(password_reset::Column::Hash)
            .filter(password_reset::Column::ExpiresAt.lte(self.now.as_ms()))
            .order_by_asc(password_reset::Column::ExpiresAt)
            .limit(u64::from(self.limit))
            .into_query();
        let resets =
            password_reset::Entity::delete_many().filter(password_reset::Column::Hash.in_subquery(expired)).exec(tx);
        let resets = resets.await?.rows_affected;
        let expired = email_verification::Entity::find()
            .select_only()
            .column(email_verification::Column::Hash)
            .filter(email_verification::Column::ExpiresAt.lte(self.now.as_ms()))
            .order_by_asc(email_verification::Column::ExpiresAt)
            .limit(u64::from(self.limit))
            .into_query();
        let verifications = email_verification::Entity::delete_many()
            .filter(email_verification::Column::Hash.in_subquery(expired))
            .exec(tx)
            .await?;
        Ok(invitations.rows_affected + resets + verifications.rows_affected)
    }
}
