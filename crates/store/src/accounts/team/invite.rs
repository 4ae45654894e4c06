//! Creates and withdraws invitations.

use grabd_domain::Timestamp;
use grabd_domain::accounts::{Email, Role};
use grabd_domain::ids::{InvitationId, TeamId, UserId};
use grabd_domain::team_limits::TeamLimit;
use grabd_domain::teams::INVITATIONS;
use sea_orm::ActiveValue::Set;
use sea_orm::{ColumnTrait, EntityTrait, JoinType, PaginatorTrait, QueryFilter, QuerySelect, RelationTrait};

use super::{TeamResult, TeamRuleError, allowed, lock_as_owner};
use crate::areas::Accounts;
use crate::audit::AuditEvent;
use crate::database::{Transaction, Tx};
use crate::entities::{invitation, member, user};
use crate::limits::limit_of;
use crate::{Result, codes};

/// An invitation to create. Contains only a hash of the token.
#[derive(Clone, Debug)]
pub struct NewInvitation {
    /// Its id.
    pub id: InvitationId,
    /// SHA-256 of the token.
    pub hash: [u8; 32],
    /// The team.
    pub team: TeamId,
    /// The invited address.
    pub email: Email,
    /// The role to give.
    pub role: Role,
    /// The inviting owner.
    pub by: UserId,
    /// Current time.
    pub now: Timestamp,
    /// Expiry.
    pub expires_at: Timestamp,
    /// Whether the link is sent by e-mail only, so that its use verifies the address.
    pub mailed: bool,
}

struct WithdrawInvitation {
    team: TeamId,
    invitation: InvitationId,
    by: UserId,
}

impl Accounts<'_> {
    /// Invites a user. Replaces an earlier invitation of the same address to the same team.
    ///
    /// # Errors
    /// Database errors only; a rejected change is an outcome.
    pub async fn invite(self, invitation: NewInvitation) -> Result<TeamResult> {
        let event =
            AuditEvent::new("member.invite", &invitation.email, Some(invitation.team)).with(&invitation.role.as_str());
        self.store.write_audited(invitation, event, TeamResult::is_ok).await
    }

    /// Withdraws an invitation.
    ///
    /// # Errors
    /// Database errors only; a rejected change is an outcome.
    pub async fn withdraw_invitation(self, team: TeamId, invitation: InvitationId, by: UserId) -> Result<TeamResult> {
        let event = AuditEvent::new("member.withdraw_invitation", &invitation, Some(team));
        self.store.write_audited(WithdrawInvitation { team, invitation, by }, event, TeamResult::is_ok).await
    }
}

impl Transaction for NewInvitation {
    type Outcome = TeamResult;

    async fn apply(&self, tx: &Tx) -> Result<TeamResult> {
        allowed!(lock_as_owner(tx, self.team, self.by));
        let members = member::Entity::find()
            .join(JoinType::InnerJoin, member::Relation::User.def())
            .filter(member::Column::TeamId.eq(self.team.0))
            .filter(user::Column::Email.eq(self.email.as_str()));
        if members.count(tx).await? > 0 {
            return Ok(Err(TeamRuleError::AlreadyMember));
        }
        let invitations = invitation::Entity::delete_many().filter(invitation::Column::TeamId.eq(self.team.0));
        invitations.clone().filter(invitation::Column::Email.eq(self.email.as_str())).exec(tx).await?;
        invitations.filter(invitation::Column::ExpiresAt.lte(self.now.as_ms())).exec(tx).await?;
        let open = invitation::Entity::find().filter(invitation::Column::TeamId.eq(self.team.0));
        if open.count(tx).await? >= limit_of(tx, self.team, TeamLimit::Invitations, INVITATIONS).await? {
            return Ok(Err(TeamRuleError::LimitReached));
        }
        let row = invitation::ActiveModel {
            id: Set(self.id.0),
            hash: Set(self.hash.to_vec()),
            team_id: Set(self.team.0),
            email: Set(self.email.to_string()),
            role: Set(codes::role(self.role)),
            invited_by: Set(self.by.0),
            created_at: Set(self.now.as_ms()),
            expires_at: Set(self.expires_at.as_ms()),
            mailed: Set(self.mailed),
        };
        invitation::Entity::insert(row).exec_without_returning(tx).await?;
        Ok(Ok(()))
    }
}

impl Transaction for WithdrawInvitation {
    type Outcome = TeamResult;

    async fn apply(&self, tx: &Tx) -> Result<TeamResult> {
        allowed!(lock_as_owner(tx, self.team, self.by));
        let deleted = invitation::Entity::delete_many()
            .filter(invitation::Column::Id.eq(self.invitation.0))
            .filter(invitation::Column::TeamId.eq(self.team.0))
            .exec(tx)
            .await?;
        Ok(if deleted.rows_affected > 0 { Ok(()) } else { Err(TeamRuleError::NotFound) })
    }
}
