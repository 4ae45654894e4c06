//! Changes roles and removes members. A team always keeps an owner: the rule is checked under the team's lock, which
//! serializes concurrent changes.

use grabd_domain::accounts::Role;
use grabd_domain::ids::{TeamId, UserId};
use grabd_domain::permissions::Permission;
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};

use super::{TeamResult, TeamRuleError, allowed, find_role, is_last_owner, lock_as_member, lock_as_owner};
use crate::areas::Accounts;
use crate::audit::AuditEvent;
use crate::database::{Transaction, Tx};
use crate::entities::{invitation, member, oauth_grant};
use crate::team_lock::lock_team;
use crate::{Result, codes};

struct SetRole {
    team: TeamId,
    user: UserId,
    role: Role,
    /// `None`: an operator.
    by: Option<UserId>,
}

struct RemoveTeamMember {
    team: TeamId,
    user: UserId,
    by: UserId,
}

struct LeaveTeam {
    team: TeamId,
    user: UserId,
}

impl Accounts<'_> {
    /// Sets the role of a member. If the role allows no apps, their OAuth grants for the team are removed. If it
    /// does not allow to set alerts, they get none.
    ///
    /// # Errors
    /// Database errors only; a rejected change is an outcome.
    pub async fn set_role(self, team: TeamId, user: UserId, role: Role, by: UserId) -> Result<TeamResult> {
        let event = AuditEvent::new("member.role", &user, Some(team)).with(&role.as_str());
        self.store.write_audited(SetRole { team, user, role, by: Some(by) }, event, TeamResult::is_ok).await
    }

    /// The same on behalf of an operator.
    ///
    /// # Errors
    /// Database errors only; a rejected change is an outcome.
    pub async fn set_role_as_operator(self, team: TeamId, user: UserId, role: Role) -> Result<TeamResult> {
        let event = AuditEvent::new("member.role", &user, Some(team)).with(&role.as_str());
        self.store.write_audited(SetRole { team, user, role, by: None }, event, TeamResult::is_ok).await
    }

    /// Removes a member and their OAuth grants for the team, on behalf of an owner.
    ///
    /// # Errors
    /// Database errors only; a rejected change is an outcome.
    pub async fn remove_team_member(self, team: TeamId, user: UserId, by: UserId) -> Result<TeamResult> {
        let event = AuditEvent::new("member.remove", &user, Some(team));
        self.store.write_audited(RemoveTeamMember { team, user, by }, event, TeamResult::is_ok).await
    }

    /// Removes the user's own membership and their OAuth grants for the team.
    ///
    /// # Errors
    /// Database errors only; a rejected change is an outcome.
    pub async fn leave_team(self, team: TeamId, user: UserId) -> Result<TeamResult> {
        let event = AuditEvent::new("member.leave", &user, Some(team));
        self.store.write_audited(LeaveTeam { team, user }, event, TeamResult::is_ok).await
    }
}

impl Transaction for SetRole {
    type Outcome = TeamResult;

    async fn apply(&self, tx: &Tx) -> Result<TeamResult> {
        let &Self { team, user, role: new, by } = self;
        match by {
            Some(by) => allowed!(lock_as_owner(tx, team, by)),
            None if lock_team(tx, team).await?.is_none() => return Ok(Err(TeamRuleError::NotMember)),
            None => {}
        }
        match (find_role(tx, team, user).await?, new) {
            (None, _) => return Ok(Err(TeamRuleError::NotFound)),
            (Some(Role::Owner), Role::Member | Role::Viewer | Role::Billing)
                if is_last_owner(tx, team, user).await? =>
            {
                return Ok(Err(TeamRuleError::LastOwner));
            }
            (Some(_), _) => {}
        }
        member::Entity::update_many()
            .col_expr(member::Column::Role, Expr::value(codes::role(new)))
            .filter(member::Column::TeamId.eq(team.0))
            .filter(member::Column::UserId.eq(user.0))
            .exec(tx)
            .await?;
        if new != Role::Owner {
            // Invitations require an owner, so those of a former owner are deleted.
            invitation::Entity::delete_many()
                .filter(invitation::Column::TeamId.eq(team.0))
                .filter(invitation::Column::InvitedBy.eq(user.0))
                .exec(tx)
                .await?;
        }
        if !new.allows(Permission::ManageAlerts) {
            member::Entity::update_many()
                .col_expr(member::Column::GetsAlerts, Expr::value(0_i16))
                .filter(member::Column::TeamId.eq(team.0))
                .filter(member::Column::UserId.eq(user.0))
                .exec(tx)
                .await?;
        }
        if !new.allows(Permission::ConnectApps) {
            // The apps of the member could do more than the member. Their codes, tokens and webhooks are deleted by cascade.
            oauth_grant::Entity::delete_many()
                .filter(oauth_grant::Column::TeamId.eq(team.0))
                .filter(oauth_grant::Column::UserId.eq(user.0))
                .exec(tx)
                .await?;
        }
        Ok(Ok(()))
    }
}

impl Transaction for RemoveTeamMember {
    type Outcome = TeamResult;

    async fn apply(&self, tx: &Tx) -> Result<TeamResult> {
        allowed!(lock_as_owner(tx, self.team, self.by));
        match find_role(tx, self.team, self.user).await? {
            None => Ok(Err(TeamRuleError::NotFound)),
            Some(role) => remove_membership(tx, self.team, self.user, role).await,
        }
    }
}

impl Transaction for LeaveTeam {
    type Outcome = TeamResult;

    async fn apply(&self, tx: &Tx) -> Result<TeamResult> {
        let role = allowed!(lock_as_member(tx, self.team, self.user));
        remove_membership(tx, self.team, self.user, role).await
    }
}

/// Deletes the membership. Its invitations and its grants with their tokens are deleted by cascade.
async fn remove_membership(tx: &Tx, team: TeamId, user: UserId, role: Role) -> Result<TeamResult> {
    if role == Role::Owner && is_last_owner(tx, team, user).await? {
        return Ok(Err(TeamRuleError::LastOwner));
    }
    member::Entity::delete_by_id((team.0, user.0)).exec(tx).await?;
    Ok(Ok(()))
}
