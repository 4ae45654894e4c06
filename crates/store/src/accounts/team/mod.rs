//! Changes that users make to their teams. Each change checks the user's permission in its own transaction, so a
//! concurrently removed user can change nothing. All changes lock the team first.

pub(crate) mod accept;
pub(crate) mod create;
pub(crate) mod invite;
pub(crate) mod keys;
pub(crate) mod members;

use grabd_domain::accounts::Role;
use grabd_domain::ids::{TeamId, UserId};
use grabd_domain::permissions::Permission;
use sea_orm::{ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter};

use crate::database::Tx;
use crate::entities::member;
use crate::team_lock::lock_team;
use crate::{Result, codes};

/// Why a change was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TeamRuleError {
    /// The user is not a member of the team, or the team does not exist or is inactive.
    NotMember,
    /// Only owners may make this change.
    NotOwner,
    /// The user's role does not allow this change.
    NotAllowed,
    /// The team has no such key, member or invitation.
    NotFound,
    /// The team would be left without an owner.
    LastOwner,
    /// The user is already a member.
    AlreadyMember,
    /// The limit is reached.
    LimitReached,
}

/// Result of a change; the inner error is a rejection.
pub type TeamResult<T = ()> = std::result::Result<T, TeamRuleError>;

/// Locks the team and returns the role of this user.
async fn lock_as_member(tx: &Tx, team: TeamId, user: UserId) -> Result<TeamResult<Role>> {
    if lock_team(tx, team).await?.is_none() {
        return Ok(Err(TeamRuleError::NotMember));
    }
    find_role(tx, team, user).await.map(|role| role.ok_or(TeamRuleError::NotMember))
}

/// Locks the team and checks that this user is an owner.
async fn lock_as_owner(tx: &Tx, team: TeamId, user: UserId) -> Result<TeamResult> {
    Ok(lock_as_member(tx, team, user).await?.and_then(|role| match role {
        Role::Owner => Ok(()),
        Role::Member | Role::Viewer | Role::Billing => Err(TeamRuleError::NotOwner),
    }))
}

/// Locks the team and checks that the role of this user has the permission.
pub(crate) async fn lock_as_permitted(
    tx: &Tx,
    team: TeamId,
    user: UserId,
    permission: Permission,
) -> Result<TeamResult> {
    let role = lock_as_member(tx, team, user).await?;
    Ok(role.and_then(|role| if role.allows(permission) { Ok(()) } else { Err(TeamRuleError::NotAllowed) }))
}

async fn find_role(tx: &Tx, team: TeamId, user: UserId) -> Result<Option<Role>> {
    let found = member::Entity::find_by_id((team.0, user.0)).one(tx).await?;
    found.map(|row| codes::read_role(row.role)).transpose()
}

/// Whether this user is the only owner.
async fn is_last_owner(tx: &Tx, team: TeamId, user: UserId) -> Result<bool> {
    let others = member::Entity::find()
        .filter(member::Column::TeamId.eq(team.0))
        .filter(member::Column::UserId.ne(user.0))
        .filter(member::Column::Role.eq(codes::role(Role::Owner)))
        .count(tx)
        .await?;
    Ok(others == 0)
}

/// Unwraps an allowed result, or returns the rejection from the transaction body.
macro_rules! allowed {
    ($result:expr) => {
        match $result.await? {
            Ok(allowed) => allowed,
            Err(error) => return Ok(Err(error)),
        }
    };
}
use allowed;
