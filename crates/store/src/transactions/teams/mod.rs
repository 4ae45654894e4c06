//! What the people of a team do with it. Each change asks, in its own transaction, what whoever makes it may do, so that a
//! person who is removed meanwhile changes nothing more. All of them lock the team first.

pub(crate) mod arrive;
pub(crate) mod found;
pub(crate) mod invite;
pub(crate) mod keys;
pub(crate) mod members;

use grabd_domain::accounts::Role;
use grabd_domain::ids::{TeamId, UserId};
use sea_orm::{ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter};

use crate::database::Tx;
use crate::entities::member;
use crate::transactions::create::lock_team;
use crate::{Result, codes};

/// Why nothing happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Whoever asks is not in that team, or there is no such team, or it may not act.
    NotIn,
    /// Only its owners may.
    NotOwner,
    /// The team has no such key, member or invitation, or no longer.
    Unknown,
    /// It would be left without an owner.
    LastOwner,
    /// They are in it already.
    AlreadyIn,
    /// There are as many as there may be.
    Full,
}

/// What a change came to.
pub type Answered<T = ()> = std::result::Result<T, Refusal>;

/// Locks the team; what this person is in it.
async fn enter(tx: &Tx, team: TeamId, user: UserId) -> Result<Answered<Role>> {
    if lock_team(tx, team).await?.is_none() {
        return Ok(Err(Refusal::NotIn));
    }
    role(tx, team, user).await.map(|role| role.ok_or(Refusal::NotIn))
}

/// The same for what only owners may do.
async fn enter_as_owner(tx: &Tx, team: TeamId, user: UserId) -> Result<Answered> {
    Ok(enter(tx, team, user).await?.and_then(|role| match role {
        Role::Owner => Ok(()),
        Role::Member => Err(Refusal::NotOwner),
    }))
}

async fn role(tx: &Tx, team: TeamId, user: UserId) -> Result<Option<Role>> {
    let found = member::Entity::find_by_id((team.0, user.0)).one(tx).await?;
    found.map(|row| codes::read_role(row.role)).transpose()
}

/// Would a team be without an owner if this person were none?
async fn is_last_owner(tx: &Tx, team: TeamId, user: UserId) -> Result<bool> {
    let others = member::Entity::find()
        .filter(member::Column::TeamId.eq(team.0))
        .filter(member::Column::UserId.ne(user.0))
        .filter(member::Column::Role.eq(codes::role(Role::Owner)))
        .count(tx)
        .await?;
    Ok(others == 0)
}

/// Goes on with what was allowed, or ends the transaction's body with what was not.
macro_rules! allowed {
    ($answered:expr) => {
        match $answered.await? {
            Ok(allowed) => allowed,
            Err(refusal) => return Ok(Err(refusal)),
        }
    };
}
use allowed;
