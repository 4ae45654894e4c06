//! Team members, invitations, password resets and sessions.

use grabd_domain::Timestamp;
use grabd_domain::accounts::{Email, Role};
use grabd_domain::ids::{InvitationId, TeamId, UserId};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder};

use crate::accounts::queries::users::{self, User};
use crate::areas::Accounts;
use crate::codes::{self, ACTIVE};
use crate::entities::{invitation, member, password_reset, session, team, user};
use crate::{Error, Result};

/// A member of a team.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The user.
    pub user: UserId,
    /// The address they sign in with.
    pub email: Email,
    /// Their role.
    pub role: Role,
    /// When they joined.
    pub created_at: Timestamp,
}

/// A valid invitation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invitation {
    /// Its id.
    pub id: InvitationId,
    /// The team.
    pub team: TeamId,
    /// Name of the team.
    pub team_name: String,
    /// The invited address.
    pub email: Email,
    /// Their role.
    pub role: Role,
    /// Address of the inviting owner.
    pub invited_by: Email,
    /// Expiry.
    pub expires_at: Timestamp,
    /// Whether the link was sent by e-mail only.
    pub mailed: bool,
}

/// A session, as listed for its user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionInfo {
    /// SHA-256 of its token.
    pub hash: [u8; 32],
    /// Creation time.
    pub created_at: Timestamp,
    /// Last recorded use.
    pub seen_at: Timestamp,
    /// The browser's `User-Agent`.
    pub agent: Option<String>,
}

impl Accounts<'_> {
    /// Name of an active team and the role of a user in it.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn find_membership(self, team: TeamId, user: UserId) -> Result<Option<(String, Role)>> {
        let found = member::Entity::find_by_id((team.0, user.0))
            .find_also_related(team::Entity)
            .filter(team::Column::Status.eq(ACTIVE))
            .one(self.store.database.reader())
            .await?;
        let Some((member, team)) = found else { return Ok(None) };
        let team = team.ok_or(Error::Inconsistent("membership without a team"))?;
        Ok(Some((team.name, codes::read_role(member.role)?)))
    }

    /// The members of a team, in the order they joined.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn list_members(self, team: TeamId) -> Result<Vec<Member>> {
        let rows = member::Entity::find()
            .find_also_related(user::Entity)
            .filter(member::Column::TeamId.eq(team.0))
            .order_by_asc(member::Column::CreatedAt)
            .order_by_asc(member::Column::UserId)
            .all(self.store.database.reader())
            .await?;
        let read = |(member, user): (member::Model, Option<user::Model>)| {
            let user = user.ok_or(Error::Inconsistent("membership without a user"))?;
            Ok(Member {
                user: UserId(user.id),
                email: email(&user.email)?,
                role: codes::read_role(member.role)?,
                created_at: Timestamp::from_ms(member.created_at),
            })
        };
        rows.into_iter().map(read).collect()
    }

    /// The unexpired invitations to a team, newest first.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn list_invitations(self, team: TeamId, now: Timestamp) -> Result<Vec<Invitation>> {
        let rows = invitation::Entity::find()
            .find_also_related(team::Entity)
            .find_also(invitation::Entity, user::Entity)
            .filter(invitation::Column::TeamId.eq(team.0))
            .filter(invitation::Column::ExpiresAt.gt(now.as_ms()))
            .order_by_desc(invitation::Column::CreatedAt)
            .order_by_desc(invitation::Column::Id)
            .all(self.store.database.reader())
            .await?;
        rows.into_iter().map(read).collect()
    }

    /// The invitation with this hash, if it has not expired and its team is active.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn find_invitation(self, hash: &[u8; 32], now: Timestamp) -> Result<Option<Invitation>> {
        let found = invitation::Entity::find()
            .find_also_related(team::Entity)
            .find_also(invitation::Entity, user::Entity)
            .filter(invitation::Column::Hash.eq(hash.to_vec()))
            .filter(invitation::Column::ExpiresAt.gt(now.as_ms()))
            .filter(team::Column::Status.eq(ACTIVE))
            .one(self.store.database.reader())
            .await?;
        found.map(read).transpose()
    }

    /// The user whose password can be reset with the token of this hash.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn find_reset(self, hash: &[u8; 32], now: Timestamp) -> Result<Option<UserId>> {
        let found = password_reset::Entity::find_by_id(hash.to_vec())
            .filter(password_reset::Column::ExpiresAt.gt(now.as_ms()))
            .one(self.store.database.reader());
        Ok(found.await?.map(|row| UserId(row.user_id)))
    }

    /// The user with this id.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn find_user_by_id(self, user: UserId) -> Result<Option<User>> {
        user::Entity::find_by_id(user.0).one(self.store.database.reader()).await?.map(users::read).transpose()
    }

    /// The unexpired sessions of a user, most recently used first.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn list_sessions(self, user: UserId, now: Timestamp) -> Result<Vec<SessionInfo>> {
        let rows = session::Entity::find()
            .filter(session::Column::UserId.eq(user.0))
            .filter(session::Column::ExpiresAt.gt(now.as_ms()))
            .order_by_desc(session::Column::SeenAt)
            .order_by_asc(session::Column::Hash)
            .all(self.store.database.reader())
            .await?;
        let read = |row: session::Model| {
            let session::Model { hash, user_id: _, created_at, seen_at, expires_at: _, agent } = row;
            Ok(SessionInfo {
                hash: hash.try_into().map_err(|_| Error::Inconsistent("hash of the wrong length"))?,
                created_at: Timestamp::from_ms(created_at),
                seen_at: Timestamp::from_ms(seen_at),
                agent,
            })
        };
        rows.into_iter().map(read).collect()
    }
}

fn read((row, team, inviter): (invitation::Model, Option<team::Model>, Option<user::Model>)) -> Result<Invitation> {
    let invitation::Model {
        id,
        hash: _,
        team_id,
        email: invited,
        role,
        invited_by: _,
        created_at: _,
        expires_at,
        mailed,
    } = row;
    let team = team.ok_or(Error::Inconsistent("invitation without a team"))?;
    let inviter = inviter.ok_or(Error::Inconsistent("invitation without an inviter"))?;
    Ok(Invitation {
        id: InvitationId(id),
        team: TeamId(team_id),
        team_name: team.name,
        email: email(&invited)?,
        role: codes::read_role(role)?,
        invited_by: email(&inviter.email)?,
        expires_at: Timestamp::from_ms(expires_at),
        mailed,
    })
}

fn email(text: &str) -> Result<Email> {
    Email::parse(text).map_err(|_| Error::Inconsistent("invalid e-mail address"))
}
