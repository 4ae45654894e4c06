//! Authorization of users who act for a team with a session instead of a key or token.

use grabd_domain::Fault;
use grabd_domain::accounts::Role;
use grabd_domain::credentials::{Caller, Environment, Principal};
use grabd_domain::ids::{TeamId, UserId};

use super::access::take_request;
use super::membership::{UserTeam, list_teams};
use crate::error::Error;
use crate::service::Core;

/// A user acting for one of their active teams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeamMember {
    /// The user.
    pub user: UserId,
    /// The team.
    pub team: TeamId,
    /// Name of the team.
    pub team_name: String,
    /// The user's role in the team.
    pub role: Role,
    /// The user's other active teams, in the order they joined them.
    pub others: Vec<UserTeam>,
}

/// The user as a member of this team; `None` when they are not a member or the team does not exist.
///
/// # Errors
/// When the database fails.
#[tracing::instrument(name = "accounts.find_team_member", skip_all)]
pub async fn find_team_member(core: &Core, user: UserId, team: TeamId) -> Result<Option<TeamMember>, Error> {
    let (this, others): (Vec<UserTeam>, Vec<UserTeam>) =
        list_teams(core, user).await?.into_iter().partition(|own| own.team == team);
    Ok(this.into_iter().next().map(|UserTeam { team, name: team_name, role }| TeamMember {
        user,
        team,
        team_name,
        role,
        others,
    }))
}

impl TeamMember {
    /// The caller of a request, counted against the rate limit that the team's keys share.
    ///
    /// # Errors
    /// [`Fault::RateLimitExceeded`].
    pub async fn admit(&self, core: &Core, environment: Environment) -> Result<Caller, Fault> {
        let caller = self.uncounted_caller(environment);
        take_request(core, caller).await.map_err(|(fault, _)| fault)?;
        Ok(caller)
    }

    /// The caller of an uncounted request: for what a counted page loads by itself, such as thumbnails and live
    /// updates. The handlers of those requests have their own limits.
    pub fn uncounted_caller(&self, environment: Environment) -> Caller {
        Caller { team: self.team, environment, principal: Principal::User(self.user) }
    }
}
