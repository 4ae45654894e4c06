//! Whoever was invited comes in, with an account they have or with a new one. An invitation lets one person in, once.

use grabd_domain::Timestamp;
use grabd_domain::accounts::Email;
use grabd_domain::ids::{TeamId, UserId};
use grabd_domain::teams::MEMBERS;
use sea_orm::ActiveValue::Set;
use sea_orm::{ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter, TryInsertResult};

use super::{Answered, Refusal, role};
use crate::database::{Transaction, Tx};
use crate::entities::{invitation, member, user};
use crate::transactions::create::lock_team;
use crate::{Error, Result, Store};

struct Acceptance {
    hash: [u8; 32],
    user: UserId,
    email: Email,
    now: Timestamp,
}

/// Somebody who comes in with a new account. The password and the token themselves are never seen here.
#[derive(Clone)]
pub struct Arrival {
    /// SHA-256 of the invitation's token.
    pub hash: [u8; 32],
    /// Their id.
    pub user: UserId,
    /// What their password is checked against.
    pub password_hash: String,
    /// When.
    pub now: Timestamp,
}

/// What an arrival came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived {
    /// They have an account, and are in this team.
    Yes(TeamId),
    /// Nothing happened, and the invitation stays: somebody has that address.
    EmailTaken,
    /// Nothing happened.
    Refused(Refusal),
}

impl Store {
    /// Lets a person into the team they were invited to under their address.
    ///
    /// # Errors
    /// Only of the database; a refusal is an outcome.
    pub async fn accept(&self, hash: [u8; 32], user: UserId, email: Email, now: Timestamp) -> Result<Answered<TeamId>> {
        self.database.write(Acceptance { hash, user, email, now }).await
    }

    /// Creates a person under the address that was invited, and lets them in.
    ///
    /// # Errors
    /// Only of the database; a refusal is an outcome.
    pub async fn arrive(&self, arrival: Arrival) -> Result<Arrived> {
        self.database.write(arrival).await
    }
}

impl Transaction for Acceptance {
    type Outcome = Answered<TeamId>;

    async fn apply(&self, tx: &Tx) -> Result<Answered<TeamId>> {
        let Some(invitation) = find(tx, self.hash, self.now).await? else { return Ok(Err(Refusal::Unknown)) };
        if invitation.email != self.email.as_str() {
            return Ok(Err(Refusal::Unknown));
        }
        match room(tx, &invitation).await? {
            Ok(()) => come_in(tx, invitation, self.user, self.now).await,
            Err(refusal) => Ok(Err(refusal)),
        }
    }
}

impl Transaction for Arrival {
    type Outcome = Arrived;

    async fn apply(&self, tx: &Tx) -> Result<Arrived> {
        let Some(invitation) = find(tx, self.hash, self.now).await? else {
            return Ok(Arrived::Refused(Refusal::Unknown));
        };
        if let Err(refusal) = room(tx, &invitation).await? {
            return Ok(Arrived::Refused(refusal));
        }
        let row = user::ActiveModel {
            id: Set(self.user.0),
            email: Set(invitation.email.clone()),
            password_hash: Set(self.password_hash.clone()),
            created_at: Set(self.now.as_ms()),
            operator: Set(false),
        };
        let inserted = user::Entity::insert(row)
            .on_conflict_do_nothing_on([user::Column::Email])
            .exec_without_returning(tx)
            .await?;
        let TryInsertResult::Inserted(1..) = inserted else { return Ok(Arrived::EmailTaken) };
        match come_in(tx, invitation, self.user, self.now).await? {
            Ok(team) => Ok(Arrived::Yes(team)),
            // The team is locked, so nobody can have been quicker; an account without a team must not be left behind.
            Err(_) => Err(Error::Inconsistent("an invitation vanished under its team's lock")),
        }
    }
}

async fn find(tx: &Tx, hash: [u8; 32], now: Timestamp) -> Result<Option<invitation::Model>> {
    let found = invitation::Entity::find()
        .filter(invitation::Column::Hash.eq(hash.to_vec()))
        .filter(invitation::Column::ExpiresAt.gt(now.as_ms()))
        .one(tx);
    Ok(found.await?)
}

/// Locks the team; is the invitation still there, and is there room for one more?
async fn room(tx: &Tx, invitation: &invitation::Model) -> Result<Answered> {
    let team = TeamId(invitation.team_id);
    if lock_team(tx, team).await?.is_none() || invitation::Entity::find_by_id(invitation.id).one(tx).await?.is_none() {
        return Ok(Err(Refusal::Unknown));
    }
    let members = member::Entity::find().filter(member::Column::TeamId.eq(team.0)).count(tx).await?;
    Ok(if members < MEMBERS { Ok(()) } else { Err(Refusal::Full) })
}

/// Under the team's lock.
async fn come_in(tx: &Tx, invitation: invitation::Model, user: UserId, now: Timestamp) -> Result<Answered<TeamId>> {
    let team = TeamId(invitation.team_id);
    let is_in = role(tx, team, user).await?.is_some();
    if invitation::Entity::delete_by_id(invitation.id).exec(tx).await?.rows_affected == 0 {
        return Ok(Err(Refusal::Unknown));
    }
    if is_in {
        return Ok(Ok(team));
    }
    let row = member::ActiveModel {
        team_id: Set(team.0),
        user_id: Set(user.0),
        role: Set(invitation.role),
        created_at: Set(now.as_ms()),
    };
    member::Entity::insert(row).exec_without_returning(tx).await?;
    Ok(Ok(team))
}
