//! Owners invite people, and think better of it.

use grabd_domain::Timestamp;
use grabd_domain::accounts::{Email, Role};
use grabd_domain::ids::{InvitationId, TeamId, UserId};
use grabd_domain::teams::INVITATIONS;
use sea_orm::ActiveValue::Set;
use sea_orm::{ColumnTrait, EntityTrait, JoinType, PaginatorTrait, QueryFilter, QuerySelect, RelationTrait};

use super::{Answered, Refusal, allowed, enter_as_owner};
use crate::database::{Transaction, Tx};
use crate::entities::{invitation, member, user};
use crate::{Result, Store, codes};

/// An invitation to give. The token itself is never seen here.
#[derive(Clone, Debug)]
pub struct NewInvitation {
    /// Its id.
    pub id: InvitationId,
    /// SHA-256 of the token.
    pub hash: [u8; 32],
    /// Into which team.
    pub team: TeamId,
    /// For whom.
    pub email: Email,
    /// As what.
    pub role: Role,
    /// Who gives it.
    pub by: UserId,
    /// When.
    pub now: Timestamp,
    /// Until when it counts.
    pub expires_at: Timestamp,
}

struct Withdrawal {
    team: TeamId,
    invitation: InvitationId,
    by: UserId,
}

impl Store {
    /// Invites somebody. An invitation of the same address into the same team counts no more.
    ///
    /// # Errors
    /// Only of the database; a refusal is an outcome.
    pub async fn invite(&self, invitation: NewInvitation) -> Result<Answered> {
        self.database.write(invitation).await
    }

    /// Takes an invitation back.
    ///
    /// # Errors
    /// Only of the database; a refusal is an outcome.
    pub async fn withdraw(&self, team: TeamId, invitation: InvitationId, by: UserId) -> Result<Answered> {
        self.database.write(Withdrawal { team, invitation, by }).await
    }
}

impl Transaction for NewInvitation {
    type Outcome = Answered;

    async fn apply(&self, tx: &Tx) -> Result<Answered> {
        allowed!(enter_as_owner(tx, self.team, self.by));
        let is_in = member::Entity::find()
            .join(JoinType::InnerJoin, member::Relation::User.def())
            .filter(member::Column::TeamId.eq(self.team.0))
            .filter(user::Column::Email.eq(self.email.as_str()));
        if is_in.count(tx).await? > 0 {
            return Ok(Err(Refusal::AlreadyIn));
        }
        let ours = invitation::Entity::delete_many().filter(invitation::Column::TeamId.eq(self.team.0));
        ours.clone().filter(invitation::Column::Email.eq(self.email.as_str())).exec(tx).await?;
        ours.filter(invitation::Column::ExpiresAt.lte(self.now.as_ms())).exec(tx).await?;
        let open = invitation::Entity::find().filter(invitation::Column::TeamId.eq(self.team.0));
        if open.count(tx).await? >= INVITATIONS {
            return Ok(Err(Refusal::Full));
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
        };
        invitation::Entity::insert(row).exec_without_returning(tx).await?;
        Ok(Ok(()))
    }
}

impl Transaction for Withdrawal {
    type Outcome = Answered;

    async fn apply(&self, tx: &Tx) -> Result<Answered> {
        allowed!(enter_as_owner(tx, self.team, self.by));
        let deleted = invitation::Entity::delete_many()
            .filter(invitation::Column::Id.eq(self.invitation.0))
            .filter(invitation::Column::TeamId.eq(self.team.0))
            .exec(tx)
            .await?;
        Ok(if deleted.rows_affected > 0 { Ok(()) } else { Err(Refusal::Unknown) })
    }
}
