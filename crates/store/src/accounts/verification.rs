//! Verifies e-mail addresses.
//!
//! Anybody can create an account with somebody else's address, so nothing that was done with an account before its
//! address was verified can be trusted to the reader of its mail. Only the browser that is signed in to the account may
//! verify it as it is. Everybody else who proves to read the mail takes the account over: see [`take_over`].

use grabd_domain::Timestamp;
use grabd_domain::accounts::VERIFICATIONS;
use grabd_domain::ids::UserId;
use grabd_domain::monitor::MonitorState;
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Expr, ExprTrait, LockType, Query};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use crate::Result;
use crate::areas::Accounts;
use crate::database::{Transaction, Tx};
use crate::entities::{
    api_key, device, email_verification, member, monitor, oauth_grant, oauth_ticket, password_reset, proxy, session,
    user, webhook_endpoint,
};
use crate::open_sites::cancel_sites;
use crate::webhooks::cancel_pending;

struct NewVerification {
    hash: [u8; 32],
    user: UserId,
    expires_at: Timestamp,
}

struct Verify {
    hash: [u8; 32],
    user: UserId,
    now: Timestamp,
}

struct TakeOver {
    hash: [u8; 32],
    password_hash: String,
    now: Timestamp,
}

struct SetVerified {
    user: UserId,
    now: Timestamp,
}

impl Accounts<'_> {
    /// Stores the hash of a verification token. A user has at most [`VERIFICATIONS`]: the oldest are deleted.
    ///
    /// # Errors
    /// [`Error::Constraint`](crate::Error::Constraint) when the user does not exist.
    pub async fn create_verification(self, hash: [u8; 32], user: UserId, expires_at: Timestamp) -> Result<()> {
        self.store.database.write(NewVerification { hash, user, expires_at }).await
    }

    /// Uses the token to verify the address of this user, who is signed in. `false`, without any change, when the
    /// token was used, has expired or is for another user.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn verify_email(self, hash: [u8; 32], user: UserId, now: Timestamp) -> Result<bool> {
        self.store.database.write(Verify { hash, user, now }).await
    }

    /// Uses the token to take the account over: sets the password, voids all access that was given before and verifies
    /// the address. `None`, without any change, when the token was used or has expired.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn take_over_account(
        self,
        hash: [u8; 32],
        password_hash: String,
        now: Timestamp,
    ) -> Result<Option<UserId>> {
        self.store.database.write(TakeOver { hash, password_hash, now }).await
    }

    /// Marks an address as verified on behalf of an operator. `false` when the user does not exist.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn set_verified(self, user: UserId, now: Timestamp) -> Result<bool> {
        self.store.database.write(SetVerified { user, now }).await
    }
}

impl Transaction for NewVerification {
    type Outcome = ();

    async fn apply(&self, tx: &Tx) -> Result<()> {
        // Serializes concurrent requests of one user, so that the limit is exact.
        user::Entity::find_by_id(self.user.0).lock(LockType::NoKeyUpdate).one(tx).await?;
        let row = email_verification::ActiveModel {
            hash: Set(self.hash.to_vec()),
            user_id: Set(self.user.0),
            expires_at: Set(self.expires_at.as_ms()),
        };
        email_verification::Entity::insert(row).exec_without_returning(tx).await?;
        let oldest: Vec<Vec<u8>> = email_verification::Entity::find()
            .select_only()
            .column(email_verification::Column::Hash)
            .filter(email_verification::Column::UserId.eq(self.user.0))
            .order_by_desc(email_verification::Column::ExpiresAt)
            .order_by_asc(email_verification::Column::Hash)
            .offset(VERIFICATIONS)
            .limit(VERIFICATIONS)
            .into_tuple()
            .all(tx)
            .await?;
        if !oldest.is_empty() {
            let delete = email_verification::Entity::delete_many();
            delete.filter(email_verification::Column::Hash.is_in(oldest)).exec(tx).await?;
        }
        Ok(())
    }
}

impl Transaction for Verify {
    type Outcome = bool;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        let used = email_verification::Entity::delete_many()
            .filter(email_verification::Column::Hash.eq(self.hash.to_vec()))
            .filter(email_verification::Column::UserId.eq(self.user.0))
            .filter(email_verification::Column::ExpiresAt.gt(self.now.as_ms()))
            .exec(tx)
            .await?;
        if used.rows_affected == 0 {
            return Ok(false);
        }
        verify(tx, self.user, self.now).await
    }
}

impl Transaction for TakeOver {
    type Outcome = Option<UserId>;

    async fn apply(&self, tx: &Tx) -> Result<Option<UserId>> {
        let used = email_verification::Entity::delete_many()
            .filter(email_verification::Column::Hash.eq(self.hash.to_vec()))
            .filter(email_verification::Column::ExpiresAt.gt(self.now.as_ms()))
            .exec_with_returning(tx)
            .await?;
        let Some(used) = used.into_iter().next() else { return Ok(None) };
        let user = UserId(used.user_id);
        take_over(tx, user, &self.password_hash, self.now).await?;
        Ok(Some(user))
    }
}

impl Transaction for SetVerified {
    type Outcome = bool;

    async fn apply(&self, tx: &Tx) -> Result<bool> {
        verify(tx, self.user, self.now).await
    }
}

/// Marks the address as verified, and deletes the verification tokens, which are no longer needed. `false` when the
/// user does not exist.
pub(super) async fn verify(tx: &Tx, user: UserId, now: Timestamp) -> Result<bool> {
    let first = Expr::col(user::Column::VerifiedAt).if_null(now.as_ms());
    let verified = user::Entity::update_many()
        .col_expr(user::Column::VerifiedAt, first)
        .filter(user::Column::Id.eq(user.0))
        .exec(tx)
        .await?;
    let tokens = email_verification::Entity::delete_many().filter(email_verification::Column::UserId.eq(user.0));
    tokens.exec(tx).await?;
    Ok(verified.rows_affected > 0)
}

/// Gives the account to the reader of its mail: verifies the address, sets the password, and voids all access that
/// somebody else may have made before: sessions, devices, links, apps, and the keys, webhooks and proxies of teams
/// without other members, whose site jobs are canceled, and whose monitors are paused, without public feeds and alerts that wait.
pub(super) async fn take_over(tx: &Tx, user: UserId, password_hash: &str, now: Timestamp) -> Result<()> {
    user::Entity::update_many()
        .col_expr(user::Column::PasswordHash, Expr::value(password_hash.to_owned()))
        .filter(user::Column::Id.eq(user.0))
        .exec(tx)
        .await?;
    verify(tx, user, now).await?;
    session::Entity::delete_many().filter(session::Column::UserId.eq(user.0)).exec(tx).await?;
    device::Entity::delete_many().filter(device::Column::UserId.eq(user.0)).exec(tx).await?;
    password_reset::Entity::delete_many().filter(password_reset::Column::UserId.eq(user.0)).exec(tx).await?;
    oauth_ticket::Entity::delete_many().filter(oauth_ticket::Column::UserId.eq(user.0)).exec(tx).await?;
    oauth_grant::Entity::delete_many().filter(oauth_grant::Column::UserId.eq(user.0)).exec(tx).await?;
    let teams = own_teams(tx, user).await?;
    let keys = api_key::Entity::update_many()
        .col_expr(api_key::Column::RevokedAt, Expr::value(now.as_ms()))
        .filter(api_key::Column::TeamId.is_in(teams.iter().copied()))
        .filter(api_key::Column::RevokedAt.is_null());
    keys.exec(tx).await?;
    // Somebody else may have chosen what they capture with the credits of the team.
    let monitors = monitor::Entity::update_many()
        .col_expr(monitor::Column::State, Expr::value(monitor::state(MonitorState::Paused)))
        .col_expr(monitor::Column::NextRunAt, Expr::value(Option::<i64>::None))
        .col_expr(monitor::Column::FeedHash, Expr::value(Option::<Vec<u8>>::None))
        .col_expr(monitor::Column::HeldUntil, Expr::value(Option::<i64>::None))
        .col_expr(monitor::Column::HeldChangeId, Expr::value(Option::<Uuid>::None))
        .col_expr(monitor::Column::HeldFailureId, Expr::value(Option::<Uuid>::None))
        .filter(monitor::Column::TeamId.is_in(teams.iter().copied()));
    monitors.exec(tx).await?;
    // They would read what captures send.
    proxy::Entity::delete_many().filter(proxy::Column::TeamId.is_in(teams.iter().copied())).exec(tx).await?;
    cancel_sites(tx, &teams, now).await?;
    let endpoints = webhook_endpoint::Entity::find()
        .filter(webhook_endpoint::Column::TeamId.is_in(teams))
        .lock(LockType::Update)
        .all(tx)
        .await?;
    for endpoint in endpoints {
        webhook_endpoint::Entity::delete_by_id(endpoint.id).exec(tx).await?;
        cancel_pending(tx, endpoint.id).await?;
    }
    Ok(())
}

/// The teams whose only member is this user.
pub(crate) async fn own_teams(tx: &Tx, user: UserId) -> Result<Vec<Uuid>> {
    let other = "other";
    let others = Query::select()
        .expr(Expr::val(1))
        .from_as(member::Entity, other)
        .and_where(Expr::col((other, member::Column::TeamId)).equals((member::Entity, member::Column::TeamId)))
        .and_where(Expr::col((other, member::Column::UserId)).ne(user.0))
        .take();
    let teams = member::Entity::find()
        .select_only()
        .column(member::Column::TeamId)
        .filter(member::Column::UserId.eq(user.0))
        .filter(Expr::exists(others).not());
    Ok(teams.into_tuple().all(tx).await?)
}
