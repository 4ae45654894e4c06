//! Teams and members, as members view and change them.

use grabd_domain::Timestamp;
use grabd_domain::accounts::{Email, Role};
use grabd_domain::ids::{TeamId, UserId};
use grabd_domain::permissions::Permission;
use grabd_domain::teams::{NameError, TeamName, TeamNameError};
use grabd_store::accounts::TeamRuleError;

use super::verification::is_verified;
use crate::error::{Error, internal_from};
use crate::random;
use crate::service::Core;

/// A team with the role of the requesting user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserTeam {
    /// Team id.
    pub team: TeamId,
    /// Name of the team.
    pub name: String,
    /// The user's role.
    pub role: Role,
}

/// A member of a team.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// User id.
    pub user: UserId,
    /// Sign-in address.
    pub email: Email,
    /// Role in the team.
    pub role: Role,
    /// When they joined.
    pub since: Timestamp,
}

/// Why a team could not be read or changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TeamError {
    /// The caller is not a member. A missing team gives the same error, so team ids cannot be probed.
    #[error("no such team")]
    NotMember,
    /// The user's e-mail address is not verified.
    #[error("the e-mail address is not verified")]
    Unverified,
    /// Only owners may do this.
    #[error("only owners may do this")]
    NotOwner,
    /// The user's role in the team does not allow this.
    #[error("the role in the team does not allow this")]
    NotAllowed,
    /// The team has no such key, member or invitation.
    #[error("not found in this team")]
    NotFound,
    /// The team would have no owner.
    #[error("a team needs an owner")]
    LastOwner,
    /// The user is already a member.
    #[error("already in the team")]
    AlreadyMember,
    /// The limit of teams, members, invitations or keys is reached.
    #[error("the limit is reached")]
    Full,
    /// The name is invalid.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The name of the team is invalid.
    #[error(transparent)]
    TeamName(#[from] TeamNameError),
    /// An internal error.
    #[error(transparent)]
    Internal(Error),
}

internal_from!(TeamError);

impl From<TeamRuleError> for TeamError {
    fn from(refusal: TeamRuleError) -> Self {
        match refusal {
            TeamRuleError::NotMember => Self::NotMember,
            TeamRuleError::NotOwner => Self::NotOwner,
            TeamRuleError::NotAllowed => Self::NotAllowed,
            TeamRuleError::NotFound => Self::NotFound,
            TeamRuleError::LastOwner => Self::LastOwner,
            TeamRuleError::AlreadyMember => Self::AlreadyMember,
            TeamRuleError::LimitReached => Self::Full,
        }
    }
}

/// Refuses users whose address is not verified.
pub(super) async fn require_verified(core: &Core, user: UserId) -> Result<(), TeamError> {
    if is_verified(core, user).await? { Ok(()) } else { Err(TeamError::Unverified) }
}

/// The active teams of a user, in the order they joined them.
///
/// # Errors
/// When the database fails.
#[tracing::instrument(name = "accounts.list_teams", skip_all)]
pub async fn list_teams(core: &Core, user: UserId) -> Result<Vec<UserTeam>, Error> {
    let listed = core.store.accounts().list_memberships(user).await?;
    Ok(listed.into_iter().map(|(team, name, role)| UserTeam { team, name, role }).collect())
}

/// A team and the role of `user` in it.
///
/// # Errors
/// [`TeamError::NotMember`] when `user` is not in the team.
#[tracing::instrument(name = "accounts.find_team", skip_all)]
pub async fn find_team(core: &Core, user: UserId, team: TeamId) -> Result<UserTeam, TeamError> {
    let found = core.store.accounts().find_membership(team, user).await?;
    found.map(|(name, role)| UserTeam { team, name, role }).ok_or(TeamError::NotMember)
}

/// A team in which the role of `user` has a permission.
///
/// # Errors
/// [`TeamError::NotMember`] when `user` is not in the team, and [`TeamError::NotAllowed`] when their role lacks the permission.
#[tracing::instrument(name = "accounts.find_permitted_team", skip_all)]
pub async fn find_permitted_team(
    core: &Core,
    user: UserId,
    team: TeamId,
    permission: Permission,
) -> Result<UserTeam, TeamError> {
    let found = find_team(core, user, team).await?;
    if found.role.allows(permission) { Ok(found) } else { Err(TeamError::NotAllowed) }
}

/// Creates a team owned by this user, without keys and credits.
///
/// # Errors
/// For an invalid name, for an unverified user, and when the user is in the maximum number of teams.
#[tracing::instrument(name = "accounts.create_own_team", skip_all)]
pub async fn create_own_team(core: &Core, user: UserId, name: &str) -> Result<TeamId, TeamError> {
    let name = TeamName::parse(name)?;
    require_verified(core, user).await?;
    let now = core.clock.now();
    let team = random::team_id(now);
    core.store_as(user).accounts().create_owned_team(team, name, user, now).await??;
    tracing::info!(team.id = %team, "team created");
    Ok(team)
}

/// Renames a team.
///
/// # Errors
/// For an invalid name, and when `user` is not an owner.
#[tracing::instrument(name = "accounts.rename_team", skip_all)]
pub async fn rename_team(core: &Core, user: UserId, team: TeamId, name: &str) -> Result<(), TeamError> {
    let name = TeamName::parse(name)?;
    Ok(core.store_as(user).accounts().rename_team(team, name, user).await??)
}

/// The members of a team, in the order they joined. Visible to members.
///
/// # Errors
/// [`TeamError::NotMember`] when `user` is not in the team.
#[tracing::instrument(name = "accounts.list_members", skip_all)]
pub async fn list_members(core: &Core, user: UserId, team: TeamId) -> Result<Vec<Member>, TeamError> {
    let members = core.store.accounts().list_members(team).await?;
    if !members.iter().any(|member| member.user == user) {
        return Err(TeamError::NotMember);
    }
    Ok(members.into_iter().map(Member::from).collect())
}

impl From<grabd_store::accounts::Member> for Member {
    fn from(member: grabd_store::accounts::Member) -> Self {
        let grabd_store::accounts::Member { user, email, role, created_at } = member;
        Self { user, email, role, since: created_at }
    }
}

/// Sets the role of a member. Their sessions have it from the next request. If it allows no apps, their app grants for the
/// team end at once; keys belong to the team and stay valid.
///
/// # Errors
/// When `by` is not an owner, and when the team would have no owner.
#[tracing::instrument(name = "accounts.set_role", skip_all)]
pub async fn set_role(core: &Core, by: UserId, team: TeamId, user: UserId, role: Role) -> Result<(), TeamError> {
    core.store_as(by).accounts().set_role(team, user, role, by).await??;
    tracing::info!(team.id = %team, user.id = %user, by.id = %by, role = role.as_str(), "member role changed");
    Ok(())
}

/// Removes a member from a team. Their app grants for the team end at once; keys belong to the team and stay valid.
///
/// # Errors
/// When `by` is not an owner, and when the team would have no owner.
#[tracing::instrument(name = "accounts.remove_member", skip_all)]
pub async fn remove_member(core: &Core, by: UserId, team: TeamId, user: UserId) -> Result<(), TeamError> {
    core.store_as(by).accounts().remove_team_member(team, user, by).await??;
    tracing::info!(team.id = %team, user.id = %user, by.id = %by, "member removed");
    Ok(())
}

/// Removes the user from a team, with the effects of [`remove_member`].
///
/// # Errors
/// When the team would have no owner.
#[tracing::instrument(name = "accounts.leave", skip_all)]
pub async fn leave(core: &Core, user: UserId, team: TeamId) -> Result<(), TeamError> {
    core.store_as(user).accounts().leave_team(team, user).await??;
    tracing::info!(team.id = %team, user.id = %user, "member left");
    Ok(())
}
