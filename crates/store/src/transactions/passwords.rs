//! Passwords change, and whoever may be signed in with the former one is signed out.

use grabd_domain::Timestamp;
use grabd_domain::ids::UserId;
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait};

use crate::database::{Transaction, Tx};
use crate::entities::{invitation, password_reset, session, user};
use crate::{Result, Store};

/// A password to change, by somebody who knows it.
#[derive(Clone)]
pub struct PasswordChange {
    /// Whose.
    pub user: UserId,
    /// What the current password was checked against.
    pub former_hash: String,
    /// What the new one is checked against.
    pub password_hash: String,
    /// The session that goes on.
    pub keep: [u8; 32],
}

struct NewReset {
    hash: [u8; 32],
    user: UserId,
    expires_at: Timestamp,
}

struct Reset {
    hash: [u8; 32],
    password_hash: String,
    now: Timestamp,
}

struct EndSessions {
    user: UserId,
    keep: [u8; 32],
}

struct EndSession {
    user: UserId,
    hash: [u8; 32],
}

struct Agent {
    hash: [u8; 32],
    agent: String,
}

struct Purge {
    now: Timestamp,
    limit: u32,
}

impl Store {
    /// Changes a password and ends every other session and every way to reset it; `false`, and nothing happened, when it
    /// was changed meanwhile.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn change_password(&self, change: PasswordChange) -> Result<bool> {
        self.database.write(change).await
    }

    /// Keeps the hash of a token that lets somebody choose another password.
    ///
    /// # Errors
    /// [`Error::Constraint`](crate::Error::Constraint) when there is no such person.
    pub async fn keep_reset(&self, hash: [u8; 32], user: UserId, expires_at: Timestamp) -> Result<()> {
        self.database.write(NewReset { hash, user, expires_at }).await
    }

    /// Takes the token, sets the password, and ends every session; whose it was. `None`, and nothing happened, when the
    /// token was used before or is too old.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn reset_password(
        &self,
        hash: [u8; 32],
        password_hash: String,
        now: Timestamp,
    ) -> Result<Option<UserId>> {
        self.database.write(Reset { hash, password_hash, now }).await
    }

    /// Ends every session of a person but one; how many those were.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn end_other_sessions(&self, user: UserId, keep: [u8; 32]) -> Result<u64> {
        self.database.write(EndSessions { user, keep }).await
    }

    /// Ends a session of this person; `false` when they have none with that hash.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn end_session(&self, user: UserId, hash: [u8; 32]) -> Result<bool> {
        self.database.write(EndSession { user, hash }).await
    }

    /// Writes down what the browser of a session says of itself.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn note_agent(&self, hash: [u8; 32], agent: String) -> Result<()> {
        self.database.write(Agent { hash, agent }).await
    }

    /// Forgets at most `limit` invitations and as many resets that are over; how many those were.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn purge_links(&self, now: Timestamp, limit: u32) -> Result<u64> {
        self.database.write(Purge { now, limit }).await
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
        end_resets(tx, self.user).await?;
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

impl Transaction for Reset {
    type Outcome = Option<UserId>;

    async fn apply(&self, tx: &Tx) -> Result<Option<UserId>> {
        let taken = password_reset::Entity::delete_many()
            .filter(password_reset::Column::Hash.eq(self.hash.to_vec()))
            .filter(password_reset::Column::ExpiresAt.gt(self.now.as_ms()))
            .exec_with_returning(tx)
            .await?;
        let Some(reset) = taken.into_iter().next() else { return Ok(None) };
        let user = UserId(reset.user_id);
        user::Entity::update_many()
            .col_expr(user::Column::PasswordHash, Expr::value(self.password_hash.clone()))
            .filter(user::Column::Id.eq(user.0))
            .exec(tx)
            .await?;
        session::Entity::delete_many().filter(session::Column::UserId.eq(user.0)).exec(tx).await?;
        end_resets(tx, user).await?;
        Ok(Some(user))
    }
}

async fn end_resets(tx: &Tx, user: UserId) -> Result<()> {
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

impl Transaction for Agent {
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

impl Transaction for Purge {
    type Outcome = u64;

    async fn apply(&self, tx: &Tx) -> Result<u64> {
        let over = invitation::Entity::find()
            .select_only()
            .column(invitation::Column::Id)
            .filter(invitation::Column::ExpiresAt.lte(self.now.as_ms()))
            .order_by_asc(invitation::Column::ExpiresAt)
            .limit(u64::from(self.limit))
            .into_query();
        let invitations =
            invitation::Entity::delete_many().filter(invitation::Column::Id.in_subquery(over)).exec(tx).await?;
        let over = password_reset::Entity::find()
            .select_only()
            .column(password_reset::Column::Hash)
            .filter(password_reset::Column::ExpiresAt.lte(self.now.as_ms()))
            .order_by_asc(password_reset::Column::ExpiresAt)
            .limit(u64::from(self.limit))
            .into_query();
        let resets =
            password_reset::Entity::delete_many().filter(password_reset::Column::Hash.in_subquery(over)).exec(tx);
        Ok(invitations.rows_affected + resets.await?.rows_affected)
    }
}
