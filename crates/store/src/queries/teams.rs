//! Who is in a team, who is invited, and where people are signed in.

use grabd_domain::Timestamp;
use grabd_domain::accounts::{Email, Role};
use grabd_domain::ids::{InvitationId, TeamId, UserId};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder};

use crate::codes::{self, ACTIVE};
use crate::entities::{invitation, member, password_reset, session, team, user};
use crate::queries::people::{self, Person};
use crate::{Error, Result, Store};

/// Somebody in a team.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Who.
    pub user: UserId,
    /// How they sign in.
    pub email: Email,
    /// As what.
    pub role: Role,
    /// Since when.
    pub created_at: Timestamp,
}

/// An invitation that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invitation {
    /// Its id.
    pub id: InvitationId,
    /// Into which team.
    pub team: TeamId,
    /// What people call it.
    pub team_name: String,
    /// For whom.
    pub email: Email,
    /// As what.
    pub role: Role,
    /// Who gave it.
    pub invited_by: Email,
    /// Until when it counts.
    pub expires_at: Timestamp,
}

/// A session that somebody has open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedSession {
    /// SHA-256 of its token.
    pub hash: [u8; 32],
    /// Since when there is one.
    pub created_at: Timestamp,
    /// The last use that was written down.
    pub seen_at: Timestamp,
    /// What the browser says of itself.
    pub agent: Option<String>,
}

impl Store {
    /// What an active team is called, and what this person is in it.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn find_membership(&self, team: TeamId, user: UserId) -> Result<Option<(String, Role)>> {
        let found = member::Entity::find_by_id((team.0, user.0))
            .find_also_related(team::Entity)
            .filter(team::Column::Status.eq(ACTIVE))
            .one(self.database.reader())
            .await?;
        let Some((member, team)) = found else { return Ok(None) };
        let team = team.ok_or(Error::Inconsistent("a member without a team"))?;
        Ok(Some((team.name, codes::read_role(member.role)?)))
    }

    /// Everybody in a team, who came first at the front.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn list_members(&self, team: TeamId) -> Result<Vec<Member>> {
        let rows = member::Entity::find()
            .find_also_related(user::Entity)
            .filter(member::Column::TeamId.eq(team.0))
            .order_by_asc(member::Column::CreatedAt)
            .order_by_asc(member::Column::UserId)
            .all(self.database.reader())
            .await?;
        let read = |(member, user): (member::Model, Option<user::Model>)| {
            let user = user.ok_or(Error::Inconsistent("a member who is nobody"))?;
            Ok(Member {
                user: UserId(user.id),
                email: email(&user.email)?,
                role: codes::read_role(member.role)?,
                created_at: Timestamp::from_ms(member.created_at),
            })
        };
        rows.into_iter().map(read).collect()
    }

    /// The invitations into a team that count, the newest first.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn list_invitations(&self, team: TeamId, now: Timestamp) -> Result<Vec<Invitation>> {
        let rows = invitation::Entity::find()
            .find_also_related(team::Entity)
            .find_also(invitation::Entity, user::Entity)
            .filter(invitation::Column::TeamId.eq(team.0))
            .filter(invitation::Column::ExpiresAt.gt(now.as_ms()))
            .order_by_desc(invitation::Column::CreatedAt)
            .order_by_desc(invitation::Column::Id)
            .all(self.database.reader())
            .await?;
        rows.into_iter().map(read).collect()
    }

    /// The invitation with this hash, if it counts and its team may act.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn find_invitation(&self, hash: &[u8; 32], now: Timestamp) -> Result<Option<Invitation>> {
        let found = invitation::Entity::find()
            .find_also_related(team::Entity)
            .find_also(invitation::Entity, user::Entity)
            .filter(invitation::Column::Hash.eq(hash.to_vec()))
            .filter(invitation::Column::ExpiresAt.gt(now.as_ms()))
            .filter(team::Column::Status.eq(ACTIVE))
            .one(self.database.reader())
            .await?;
        found.map(read).transpose()
    }

    /// Whose password may be reset with the token of this hash.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn find_reset(&self, hash: &[u8; 32], now: Timestamp) -> Result<Option<UserId>> {
        let found = password_reset::Entity::find_by_id(hash.to_vec())
            .filter(password_reset::Column::ExpiresAt.gt(now.as_ms()))
            .one(self.database.reader());
        Ok(found.await?.map(|row| UserId(row.user_id)))
    }

    /// The person with this id.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn person(&self, user: UserId) -> Result<Option<Person>> {
        user::Entity::find_by_id(user.0).one(self.database.reader()).await?.map(people::read).transpose()
    }

    /// The sessions of a person that are not over, the one that was used last first.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn list_sessions(&self, user: UserId, now: Timestamp) -> Result<Vec<ListedSession>> {
        let rows = session::Entity::find()
            .filter(session::Column::UserId.eq(user.0))
            .filter(session::Column::ExpiresAt.gt(now.as_ms()))
            .order_by_desc(session::Column::SeenAt)
            .order_by_asc(session::Column::Hash)
            .all(self.database.reader())
            .await?;
        let read = |row: session::Model| {
            let session::Model { hash, user_id: _, created_at, seen_at, expires_at: _, agent } = row;
            Ok(ListedSession {
                hash: hash.try_into().map_err(|_| Error::Inconsistent("a hash of another length"))?,
                created_at: Timestamp::from_ms(created_at),
                seen_at: Timestamp::from_ms(seen_at),
                agent,
            })
        };
        rows.into_iter().map(read).collect()
    }
}

fn read((row, team, by): (invitation::Model, Option<team::Model>, Option<user::Model>)) -> Result<Invitation> {
    let invitation::Model { id, hash: _, team_id, email: invited, role, invited_by: _, created_at: _, expires_at } =
        row;
    let team = team.ok_or(Error::Inconsistent("an invitation without a team"))?;
    let by = by.ok_or(Error::Inconsistent("an invitation by nobody"))?;
    Ok(Invitation {
        id: InvitationId(id),
        team: TeamId(team_id),
        team_name: team.name,
        email: email(&invited)?,
        role: codes::read_role(role)?,
        invited_by: email(&by.email)?,
        expires_at: Timestamp::from_ms(expires_at),
    })
}

fn email(text: &str) -> Result<Email> {
    Email::parse(text).map_err(|_| Error::Inconsistent("an e-mail address that is none"))
}
