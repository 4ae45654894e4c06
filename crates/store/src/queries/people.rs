//! People, where they belong, and who sits in front of a browser.

use grabd_domain::Timestamp;
use grabd_domain::accounts::{Email, Role};
use grabd_domain::ids::{TeamId, UserId};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

use crate::codes::{self, ACTIVE};
use crate::entities::{member, session, team, user};
use crate::{Error, Result, Store};

/// A person, without their password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// Their id.
    pub id: UserId,
    /// How they sign in.
    pub email: Email,
    /// Since when.
    pub created_at: Timestamp,
    /// Do they see how the whole service is?
    pub operator: bool,
}

/// What a password is checked against.
#[derive(Clone)]
pub struct Login {
    /// Whose it is.
    pub user: UserId,
    /// The hash.
    pub password_hash: String,
}

/// A session that is not over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenSession {
    /// Whose it is.
    pub person: Person,
    /// Since when there is one.
    pub created_at: Timestamp,
    /// The last use that was written down.
    pub seen_at: Timestamp,
}

impl Store {
    /// What the password of whoever has this address is checked against.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn find_login(&self, email: &Email) -> Result<Option<Login>> {
        let found = user::Entity::find().filter(user::Column::Email.eq(email.as_str())).one(self.database.reader());
        Ok(found.await?.map(|row| Login { user: UserId(row.id), password_hash: row.password_hash }))
    }

    /// Whoever has this address.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn find_person(&self, email: &Email) -> Result<Option<Person>> {
        let found = user::Entity::find().filter(user::Column::Email.eq(email.as_str())).one(self.database.reader());
        found.await?.map(read).transpose()
    }

    /// Is there anybody who could sign in?
    ///
    /// # Errors
    /// Only of the database.
    pub async fn has_people(&self) -> Result<bool> {
        Ok(user::Entity::find().limit(1).one(self.database.reader()).await?.is_some())
    }

    /// Everybody, the oldest first.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn list_people(&self) -> Result<Vec<Person>> {
        let oldest_first = user::Entity::find().order_by_asc(user::Column::CreatedAt).order_by_asc(user::Column::Id);
        oldest_first.all(self.database.reader()).await?.into_iter().map(read).collect()
    }

    /// The active teams of a person, the one they joined first at the front.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn list_memberships(&self, user: UserId) -> Result<Vec<(TeamId, String, Role)>> {
        let rows = member::Entity::find()
            .find_also_related(team::Entity)
            .filter(member::Column::UserId.eq(user.0))
            .filter(team::Column::Status.eq(ACTIVE))
            .order_by_asc(member::Column::CreatedAt)
            .order_by_asc(member::Column::TeamId)
            .all(self.database.reader())
            .await?;
        let read = |(member, team): (member::Model, Option<team::Model>)| {
            let team = team.ok_or(Error::Inconsistent("a member without a team"))?;
            Ok((TeamId(team.id), team.name, codes::read_role(member.role)?))
        };
        rows.into_iter().map(read).collect()
    }

    /// The session with this hash, if it is not over.
    ///
    /// # Errors
    /// Only of the database.
    pub async fn find_session(&self, hash: &[u8; 32], now: Timestamp) -> Result<Option<OpenSession>> {
        let found = session::Entity::find_by_id(hash.to_vec())
            .find_also_related(user::Entity)
            .filter(session::Column::ExpiresAt.gt(now.as_ms()))
            .limit(1)
            .one(self.database.reader())
            .await?;
        let Some((session, person)) = found else { return Ok(None) };
        Ok(Some(OpenSession {
            person: read(person.ok_or(Error::Inconsistent("a session of nobody"))?)?,
            created_at: Timestamp::from_ms(session.created_at),
            seen_at: Timestamp::from_ms(session.seen_at),
        }))
    }
}

pub(super) fn read(row: user::Model) -> Result<Person> {
    let user::Model { id, email, password_hash: _, created_at, operator } = row;
    let email = Email::parse(&email).map_err(|_| Error::Inconsistent("a person without an e-mail address"))?;
    Ok(Person { id: UserId(id), email, created_at: Timestamp::from_ms(created_at), operator })
}
