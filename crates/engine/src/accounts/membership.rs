//! The teams of people, as they see and change them themselves.

use grabd_domain::accounts::{Email, Role};
use grabd_domain::ids::{TeamId, UserId};
use grabd_domain::teams::{Name, NameError};
use grabd_domain::{Fault, Timestamp};
use grabd_store::Refusal;

use crate::chance;
use crate::core::{Core, inside};

/// A team as one of its people sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MyTeam {
    /// Which one.
    pub team: TeamId,
    /// What people call it.
    pub name: String,
    /// What they are in it.
    pub role: Role,
}

/// Somebody in a team.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Who.
    pub user: UserId,
    /// How they sign in.
    pub email: Email,
    /// As what.
    pub role: Role,
    /// Since when.
    pub since: Timestamp,
}

/// Why a team stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TeamError {
    /// Whoever asks is not in it; nobody else is told that there is one.
    #[error("no such team")]
    NotIn,
    /// Only its owners may.
    #[error("only owners may do this")]
    NotOwner,
    /// The team has no such key, member or invitation, or no longer.
    #[error("no such thing in this team")]
    Unknown,
    /// It would be left without an owner.
    #[error("a team needs an owner")]
    LastOwner,
    /// They are in it already.
    #[error("already in the team")]
    AlreadyIn,
    /// There are as many as there may be.
    #[error("as many as there may be")]
    Full,
    /// The name is none.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Our own failure.
    #[error(transparent)]
    Inside(#[from] Fault),
}

impl From<Refusal> for TeamError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NotIn => Self::NotIn,
            Refusal::NotOwner => Self::NotOwner,
            Refusal::Unknown => Self::Unknown,
            Refusal::LastOwner => Self::LastOwner,
            Refusal::AlreadyIn => Self::AlreadyIn,
            Refusal::Full => Self::Full,
        }
    }
}

/// Turns what the store answered into what people are told.
pub(super) fn told<T>(
    step: &'static str,
    answered: grabd_store::Result<grabd_store::Answered<T>>,
) -> Result<T, TeamError> {
    Ok(answered.map_err(inside(step))??)
}

/// The active teams of a person, the one they joined first at the front.
///
/// # Errors
/// Only our own.
pub async fn list_teams(core: &Core, user: UserId) -> Result<Vec<MyTeam>, Fault> {
    let listed = core.store.list_memberships(user).await.map_err(inside("accounts.list_teams"))?;
    Ok(listed.into_iter().map(|(team, name, role)| MyTeam { team, name, role }).collect())
}

/// A team, for whoever is in it.
///
/// # Errors
/// [`TeamError::NotIn`] for everybody else.
pub async fn find_team(core: &Core, user: UserId, team: TeamId) -> Result<MyTeam, TeamError> {
    let found = core.store.find_membership(team, user).await.map_err(inside("accounts.find_team"))?;
    found.map(|(name, role)| MyTeam { team, name, role }).ok_or(TeamError::NotIn)
}

/// Creates a team that this person owns, without keys and credits.
///
/// # Errors
/// For a bad name, and beyond as many teams as somebody may be in.
pub async fn found_team(core: &Core, user: UserId, name: &str) -> Result<TeamId, TeamError> {
    let name = Name::parse(name)?;
    let now = core.clock.now();
    let team = chance::team_id(now);
    told("accounts.found_team", core.store.found_team(team, name, user, now).await)?;
    tracing::info!(team.id = %team, "a team was founded");
    Ok(team)
}

/// Calls a team something else.
///
/// # Errors
/// For a bad name, and for whoever is no owner.
pub async fn rename_team(core: &Core, user: UserId, team: TeamId, name: &str) -> Result<(), TeamError> {
    let name = Name::parse(name)?;
    told("accounts.rename_team", core.store.rename_team(team, name, user).await)
}

/// Everybody in a team, for whoever is in it too; who came first at the front.
///
/// # Errors
/// [`TeamError::NotIn`] for everybody else.
pub async fn list_members(core: &Core, user: UserId, team: TeamId) -> Result<Vec<Member>, TeamError> {
    let members = core.store.list_members(team).await.map_err(inside("accounts.list_members"))?;
    if !members.iter().any(|member| member.user == user) {
        return Err(TeamError::NotIn);
    }
    Ok(members.into_iter().map(Member::from).collect())
}

impl From<grabd_store::Member> for Member {
    fn from(member: grabd_store::Member) -> Self {
        let grabd_store::Member { user, email, role, created_at } = member;
        Self { user, email, role, since: created_at }
    }
}

/// Makes a member an owner, or an owner a member.
///
/// # Errors
/// For whoever is no owner, and when nobody would be one.
pub async fn appoint(core: &Core, by: UserId, team: TeamId, user: UserId, role: Role) -> Result<(), TeamError> {
    told("accounts.appoint", core.store.appoint(team, user, role, by).await)?;
    tracing::info!(team.id = %team, user.id = %user, by.id = %by, role = role.as_str(), "a member's role was changed");
    Ok(())
}

/// Removes somebody from a team. What their apps may do there ends at once; keys belong to the team and stay.
///
/// # Errors
/// For whoever is no owner, and when nobody would be one.
pub async fn dismiss(core: &Core, by: UserId, team: TeamId, user: UserId) -> Result<(), TeamError> {
    told("accounts.dismiss", core.store.dismiss(team, user, by).await)?;
    tracing::info!(team.id = %team, user.id = %user, by.id = %by, "a member was removed");
    Ok(())
}

/// Has somebody leave a team, as [`dismiss`].
///
/// # Errors
/// When nobody would own it.
pub async fn leave(core: &Core, user: UserId, team: TeamId) -> Result<(), TeamError> {
    told("accounts.leave", core.store.leave_team(team, user).await)?;
    tracing::info!(team.id = %team, user.id = %user, "a member left");
    Ok(())
}
