//! Members become owners and the other way round, are removed, and leave. A team is never left without an owner: the
//! rule is asked under the team's lock, so two who leave at once find out in turn.

use grabd_domain::accounts::Role;
use grabd_domain::ids::{TeamId, UserId};
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};

use super::{Answered, Refusal, allowed, enter, enter_as_owner, is_last_owner, role};
use crate::database::{Transaction, Tx};
use crate::entities::{invitation, member};
use crate::{Result, Store, codes};

struct Appointment {
    team: TeamId,
    user: UserId,
    role: Role,
    by: UserId,
}

struct Removal {
    team: TeamId,
    user: UserId,
    by: UserId,
}

struct Leaving {
    team: TeamId,
    user: UserId,
}

impl Store {
    /// Makes a member of a team an owner, or an owner a member.
    ///
    /// # Errors
    /// Only of the database; a refusal is an outcome.
    pub async fn appoint(&self, team: TeamId, user: UserId, role: Role, by: UserId) -> Result<Answered> {
        self.database.write(Appointment { team, user, role, by }).await
    }

    /// Has an owner remove somebody, and with their membership every app they let act for the team.
    ///
    /// # Errors
    /// Only of the database; a refusal is an outcome.
    pub async fn dismiss(&self, team: TeamId, user: UserId, by: UserId) -> Result<Answered> {
        self.database.write(Removal { team, user, by }).await
    }

    /// Has somebody leave a team, and their apps with them.
    ///
    /// # Errors
    /// Only of the database; a refusal is an outcome.
    pub async fn leave_team(&self, team: TeamId, user: UserId) -> Result<Answered> {
        self.database.write(Leaving { team, user }).await
    }
}

impl Transaction for Appointment {
    type Outcome = Answered;

    async fn apply(&self, tx: &Tx) -> Result<Answered> {
        let &Self { team, user, role: new, by } = self;
        allowed!(enter_as_owner(tx, team, by));
        match (role(tx, team, user).await?, new) {
            (None, _) => return Ok(Err(Refusal::Unknown)),
            (Some(Role::Owner), Role::Member) if is_last_owner(tx, team, user).await? => {
                return Ok(Err(Refusal::LastOwner));
            }
            (Some(_), _) => {}
        }
        member::Entity::update_many()
            .col_expr(member::Column::Role, Expr::value(codes::role(new)))
            .filter(member::Column::TeamId.eq(team.0))
            .filter(member::Column::UserId.eq(user.0))
            .exec(tx)
            .await?;
        if new == Role::Member {
            // Whom they invited as an owner must not outlive that they were one.
            invitation::Entity::delete_many()
                .filter(invitation::Column::TeamId.eq(team.0))
                .filter(invitation::Column::InvitedBy.eq(user.0))
                .exec(tx)
                .await?;
        }
        Ok(Ok(()))
    }
}

impl Transaction for Removal {
    type Outcome = Answered;

    async fn apply(&self, tx: &Tx) -> Result<Answered> {
        allowed!(enter_as_owner(tx, self.team, self.by));
        match role(tx, self.team, self.user).await? {
            None => Ok(Err(Refusal::Unknown)),
            Some(role) => end(tx, self.team, self.user, role).await,
        }
    }
}

impl Transaction for Leaving {
    type Outcome = Answered;

    async fn apply(&self, tx: &Tx) -> Result<Answered> {
        let role = allowed!(enter(tx, self.team, self.user));
        end(tx, self.team, self.user, role).await
    }
}

/// What stands on the membership goes with it: invitations, and grants with their tokens.
async fn end(tx: &Tx, team: TeamId, user: UserId, role: Role) -> Result<Answered> {
    if role == Role::Owner && is_last_owner(tx, team, user).await? {
        return Ok(Err(Refusal::LastOwner));
    }
    member::Entity::delete_by_id((team.0, user.0)).exec(tx).await?;
    Ok(Ok(()))
}
