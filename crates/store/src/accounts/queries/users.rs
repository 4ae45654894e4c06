//! Users, their memberships and sign-in sessions.

use grabd_domain::Timestamp;
use grabd_domain::accounts::{Email, Role};
use grabd_domain::ids::{TeamId, UserId};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

use crate::accounts::queries::accounts::Suspension;
use crate::areas::Accounts;
use crate::codes::{self, ACTIVE, SUSPENDED, read_time};
use crate::entities::{device, email_verification, member, session, team, user};
use crate::{Error, Result};

/// A user, without the password hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The user's id.
    pub id: UserId,
    /// The address they sign in with.
    pub email: Email,
    /// Creation time.
    pub created_at: Timestamp,
    /// Whether the user is an operator of the service.
    pub operator: bool,
    /// When the user proved that they read the address's mail.
    pub verified_at: Option<Timestamp>,
    /// Their suspension, if they are suspended: they cannot sign in.
    pub suspension: Option<Suspension>,
}

/// Credentials for checking a password.
#[derive(Clone)]
pub struct Login {
    /// The user.
    pub user: UserId,
    /// The password hash.
    pub password_hash: String,
}

/// A browser that somebody has signed in with. Contains only hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// SHA-256 of the browser's token.
    pub hash: [u8; 32],
    /// SHA-256 of the user and the network of the last sign-in.
    pub network: [u8; 32],
}

/// A session that has not expired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenSession {
    /// The user.
    pub user: User,
    /// Creation time.
    pub created_at: Timestamp,
    /// Last recorded use.
    pub seen_at: Timestamp,
}

impl Accounts<'_> {
    /// The credentials of the user with this address.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn find_login(self, email: &Email) -> Result<Option<Login>> {
        let found =
            user::Entity::find().filter(user::Column::Email.eq(email.as_str())).one(self.store.database.reader());
        Ok(found.await?.map(|row| Login { user: UserId(row.id), password_hash: row.password_hash }))
    }

    /// The credentials of a user.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn find_login_by_id(self, user: UserId) -> Result<Option<Login>> {
        let found = user::Entity::find_by_id(user.0).one(self.store.database.reader());
        Ok(found.await?.map(|row| Login { user: UserId(row.id), password_hash: row.password_hash }))
    }

    /// The user with this address.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn find_user(self, email: &Email) -> Result<Option<User>> {
        let found =
            user::Entity::find().filter(user::Column::Email.eq(email.as_str())).one(self.store.database.reader());
        found.await?.map(read).transpose()
    }

    /// The devices of a user that have signed in after `since`.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn list_devices(self, user: UserId, since: Timestamp) -> Result<Vec<Device>> {
        let rows = device::Entity::find()
            .filter(device::Column::UserId.eq(user.0))
            .filter(device::Column::SeenAt.gt(since.as_ms()))
            .order_by_desc(device::Column::SeenAt)
            .all(self.store.database.reader())
            .await?;
        let hash = |hash: Vec<u8>| hash.try_into().map_err(|_| Error::Inconsistent("hash of the wrong length"));
        rows.into_iter().map(|row| Ok(Device { hash: hash(row.hash)?, network: hash(row.network)? })).collect()
    }

    /// Whether somebody has signed in with this device after `since`.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn is_known_device(self, hash: &[u8; 32], since: Timestamp) -> Result<bool> {
        let found = device::Entity::find()
            .filter(device::Column::Hash.eq(hash.to_vec()))
            .filter(device::Column::SeenAt.gt(since.as_ms()))
            .limit(1)
            .one(self.store.database.reader());
        Ok(found.await?.is_some())
    }

    /// The user whose address the token of this hash verifies.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn find_verification(self, hash: &[u8; 32], now: Timestamp) -> Result<Option<UserId>> {
        let found = email_verification::Entity::find_by_id(hash.to_vec())
            .filter(email_verification::Column::ExpiresAt.gt(now.as_ms()))
            .one(self.store.database.reader());
        Ok(found.await?.map(|row| UserId(row.user_id)))
    }

    /// Whether there is any user.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn has_users(self) -> Result<bool> {
        Ok(user::Entity::find().limit(1).one(self.store.database.reader()).await?.is_some())
    }

    /// All users, oldest first.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn list_users(self) -> Result<Vec<User>> {
        let oldest_first = user::Entity::find().order_by_asc(user::Column::CreatedAt).order_by_asc(user::Column::Id);
        oldest_first.all(self.store.database.reader()).await?.into_iter().map(read).collect()
    }

    /// The active teams of a user, in the order they joined.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn list_memberships(self, user: UserId) -> Result<Vec<(TeamId, String, Role)>> {
        let rows = member::Entity::find()
            .find_also_related(team::Entity)
            .filter(member::Column::UserId.eq(user.0))
            .filter(team::Column::Status.eq(ACTIVE))
            .order_by_asc(member::Column::CreatedAt)
            .order_by_asc(member::Column::TeamId)
            .all(self.store.database.reader())
            .await?;
        let read = |(member, team): (member::Model, Option<team::Model>)| {
            let team = team.ok_or(Error::Inconsistent("membership without a team"))?;
            Ok((TeamId(team.id), team.name, codes::read_role(member.role)?))
        };
        rows.into_iter().map(read).collect()
    }

    /// The suspended teams of a user, in the order they joined.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn list_suspended_teams(self, user: UserId) -> Result<Vec<(TeamId, String)>> {
        let rows = member::Entity::find()
            .find_also_related(team::Entity)
            .filter(member::Column::UserId.eq(user.0))
            .filter(team::Column::Status.eq(SUSPENDED))
            .order_by_asc(member::Column::CreatedAt)
            .order_by_asc(member::Column::TeamId)
            .all(self.store.database.reader())
            .await?;
        Ok(rows.into_iter().filter_map(|(_, team)| team.map(|team| (TeamId(team.id), team.name))).collect())
    }

    /// The session with this hash, if it has not expired and its user is not suspended.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn find_session(self, hash: &[u8; 32], now: Timestamp) -> Result<Option<OpenSession>> {
        let found = session::Entity::find_by_id(hash.to_vec())
            .find_also_related(user::Entity)
            .filter(session::Column::ExpiresAt.gt(now.as_ms()))
            .filter(user::Column::SuspendedAt.is_null())
            .limit(1)
            .one(self.store.database.reader())
            .await?;
        let Some((session, user)) = found else { return Ok(None) };
        Ok(Some(OpenSession {
            user: read(user.ok_or(Error::Inconsistent("session without a user"))?)?,
            created_at: Timestamp::from_ms(session.created_at),
            seen_at: Timestamp::from_ms(session.seen_at),
        }))
    }
}

pub(crate) fn read(row: user::Model) -> Result<User> {
    let user::Model { id, email, password_hash: _, created_at, operator, verified_at, suspended_at, suspended_reason } =
        row;
    let suspension =
        suspended_at.map(|at| Suspension { at: Timestamp::from_ms(at), reason: suspended_reason.unwrap_or_default() });
    let email = Email::parse(&email).map_err(|_| Error::Inconsistent("user with an invalid e-mail address"))?;
    let (created_at, verified_at) = (Timestamp::from_ms(created_at), read_time(verified_at));
    Ok(User { id: UserId(id), email, created_at, operator, verified_at, suspension })
}
