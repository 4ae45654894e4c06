//! Accepts invitations, with an existing account or a new one. An invitation can be used once.

use grabd_domain::Timestamp;
use grabd_domain::accounts::Email;
use grabd_domain::ids::{TeamId, UserId};
use grabd_domain::team_limits::TeamLimit;
use grabd_domain::teams::MEMBERS;
use sea_orm::ActiveValue::Set;
use sea_orm::{ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter, TryInsertResult};

use super::{TeamResult, TeamRuleError, find_role};
use crate::accounts::verification;
use crate::areas::Accounts;
use crate::audit::AuditEvent;
use crate::database::{Transaction, Tx};
use crate::entities::{invitation, member, user};
use crate::limits::limit_of;
use crate::team_lock::lock_team;
use crate::{Error, Result};

struct AcceptInvitation {
    hash: [u8; 32],
    user: UserId,
    email: Email,
    now: Timestamp,
}

/// An invited user without an account. Contains only hashes of the password and the token.
#[derive(Clone)]
pub struct InvitedSignUp {
    /// SHA-256 of the invitation token.
    pub hash: [u8; 32],
    /// The id of the new user.
    pub user: UserId,
    /// Hash of the password.
    pub password_hash: String,
    /// Whether the address needs no verification. Using a link that was sent by e-mail verifies it anyway.
    pub verified: bool,
    /// Current time.
    pub now: Timestamp,
}

/// Outcome of signing up with an invitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignUpOutcome {
    /// The account was created, or was taken over by the reader of its mail, and is a member of the team.
    Joined {
        /// The team.
        team: TeamId,
        /// The user.
        user: UserId,
    },
    /// Nothing changed: the address is in use. The invitation stays valid.
    EmailTaken,
    /// Nothing changed.
    Refused(TeamRuleError),
}

impl Accounts<'_> {
    /// Adds a user to the team they were invited to. The invited address must be theirs. A link that was sent by
    /// e-mail verifies it.
    ///
    /// # Errors
    /// Database errors only; a rejected change is an outcome.
    pub async fn accept_invitation(
        self,
        hash: [u8; 32],
        user: UserId,
        email: Email,
        now: Timestamp,
    ) -> Result<TeamResult<TeamId>> {
        let describe = move |outcome: &TeamResult<TeamId>| {
            outcome.as_ref().ok().map(|team| AuditEvent::new("member.join", &user, Some(*team)))
        };
        self.store.write_described(AcceptInvitation { hash, user, email, now }, describe).await
    }

    /// Creates a user with the invited address and adds them to the team. An account whose address was never
    /// verified is taken over if the link was sent by e-mail.
    ///
    /// # Errors
    /// Database errors only; a rejected change is an outcome.
    pub async fn sign_up_invited(self, sign_up: InvitedSignUp) -> Result<SignUpOutcome> {
        let user = sign_up.user;
        let describe = move |outcome: &SignUpOutcome| match outcome {
            SignUpOutcome::Joined { team, .. } => Some(AuditEvent::new("member.join", &user, Some(*team))),
            SignUpOutcome::EmailTaken | SignUpOutcome::Refused(_) => None,
        };
        self.store.write_described(sign_up, describe).await
    }
}

impl Transaction for AcceptInvitation {
    type Outcome = TeamResult<TeamId>;

    async fn apply(&self, tx: &Tx) -> Result<TeamResult<TeamId>> {
        let Some(invitation) = find(tx, self.hash, self.now).await? else { return Ok(Err(TeamRuleError::NotFound)) };
        if invitation.email != self.email.as_str() {
            return Ok(Err(TeamRuleError::NotFound));
        }
        match check_capacity(tx, &invitation).await? {
            Ok(()) => {
                if invitation.mailed {
                    verification::verify(tx, self.user, self.now).await?;
                }
                add_member(tx, invitation, self.user, self.now).await
            }
            Err(error) => Ok(Err(error)),
        }
    }
}

impl Transaction for InvitedSignUp {
    type Outcome = SignUpOutcome;

    async fn apply(&self, tx: &Tx) -> Result<SignUpOutcome> {
        let Some(invitation) = find(tx, self.hash, self.now).await? else {
            return Ok(SignUpOutcome::Refused(TeamRuleError::NotFound));
        };
        if let Err(error) = check_capacity(tx, &invitation).await? {
            return Ok(SignUpOutcome::Refused(error));
        }
        let row = user::ActiveModel {
            id: Set(self.user.0),
            email: Set(invitation.email.clone()),
            password_hash: Set(self.password_hash.clone()),
            created_at: Set(self.now.as_ms()),
            operator: Set(false),
            verified_at: Set((self.verified || invitation.mailed).then_some(self.now.as_ms())),
            suspended_at: Set(None),
            suspended_reason: Set(None),
        };
        let inserted = user::Entity::insert(row)
            .on_conflict_do_nothing_on([user::Column::Email])
            .exec_without_returning(tx)
            .await?;
        let user = if let TryInsertResult::Inserted(1..) = inserted {
            self.user
        } else {
            let Some(user) = unverified(tx, &invitation).await? else { return Ok(SignUpOutcome::EmailTaken) };
            verification::take_over(tx, user, &self.password_hash, self.now).await?;
            user
        };
        match add_member(tx, invitation, user, self.now).await? {
            Ok(team) => Ok(SignUpOutcome::Joined { team, user }),
            // Impossible while the team is locked. An account without a team must not be created.
            Err(_) => Err(Error::Inconsistent("invitation disappeared under the team's lock")),
        }
    }
}

/// The account with the invited address, if it was never verified and the link proves who reads its mail.
async fn unverified(tx: &Tx, invitation: &invitation::Model) -> Result<Option<UserId>> {
    if !invitation.mailed {
        return Ok(None);
    }
    let found = user::Entity::find()
        .filter(user::Column::Email.eq(invitation.email.as_str()))
        .filter(user::Column::VerifiedAt.is_null())
        .one(tx);
    Ok(found.await?.map(|row| UserId(row.id)))
}

async fn find(tx: &Tx, hash: [u8; 32], now: Timestamp) -> Result<Option<invitation::Model>> {
    let found = invitation::Entity::find()
        .filter(invitation::Column::Hash.eq(hash.to_vec()))
        .filter(invitation::Column::ExpiresAt.gt(now.as_ms()))
        .one(tx);
    Ok(found.await?)
}

/// Locks the team and checks that the invitation still exists and the team is not full.
async fn check_capacity(tx: &Tx, invitation: &invitation::Model) -> Result<TeamResult> {
    let team = TeamId(invitation.team_id);
    if lock_team(tx, team).await?.is_none() || invitation::Entity::find_by_id(invitation.id).one(tx).await?.is_none() {
        return Ok(Err(TeamRuleError::NotFound));
    }
    let members = member::Entity::find().filter(member::Column::TeamId.eq(team.0)).count(tx).await?;
    let limit = limit_of(tx, team, TeamLimit::Members, MEMBERS).await?;
    Ok(if members < limit { Ok(()) } else { Err(TeamRuleError::LimitReached) })
}

/// Adds the member. Requires the team's lock.
async fn add_member(
    tx: &Tx,
    invitation: invitation::Model,
    user: UserId,
    now: Timestamp,
) -> Result<TeamResult<TeamId>> {
    let team = TeamId(invitation.team_id);
    let is_member = find_role(tx, team, user).await?.is_some();
    if invitation::Entity::delete_by_id(invitation.id).exec(tx).await?.rows_affected == 0 {
        return Ok(Err(TeamRuleError::NotFound));
    }
    if is_member {
        return Ok(Ok(team));
    }
    let row = member::ActiveModel {
        team_id: Set(team.0),
        user_id: Set(user.0),
        role: Set(invitation.role),
        created_at: Set(now.as_ms()),
        first_steps_hidden_at: Set(None),
        gets_alerts: Set(0),
    };
    member::Entity::insert(row).exec_without_returning(tx).await?;
    Ok(Ok(team))
}
