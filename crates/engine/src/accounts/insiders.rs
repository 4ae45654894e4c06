//! People at work in their teams: the gate for those who come with a session and not with a credential.

use grabd_domain::Fault;
use grabd_domain::credentials::{Caller, Environment, Principal};
use grabd_domain::ids::{TeamId, UserId};

use crate::core::{Core, inside};

/// Somebody in an active team of theirs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Insider {
    /// Who.
    pub person: UserId,
    /// Where.
    pub team: TeamId,
    /// What people call it.
    pub team_name: String,
    /// Their other active teams, in the order in which they joined them.
    pub others: Vec<(TeamId, String)>,
}

/// The person as an insider of this team; `None` when they are not, or when there is no such team.
///
/// # Errors
/// Only our own.
pub async fn find_insider(core: &Core, person: UserId, team: TeamId) -> Result<Option<Insider>, Fault> {
    let teams = core.store.list_memberships(person).await.map_err(inside("accounts.find_insider"))?;
    let (here, others): (Vec<_>, Vec<_>) =
        teams.into_iter().map(|(id, name, _)| (id, name)).partition(|(id, _)| *id == team);
    Ok(here.into_iter().next().map(|(team, team_name)| Insider { person, team, team_name, others }))
}

impl Insider {
    /// The caller that a request of theirs is, counted in the bucket that the team's keys share.
    ///
    /// # Errors
    /// [`Fault::RateLimitExceeded`].
    pub fn enter(&self, core: &Core, environment: Environment) -> Result<Caller, Fault> {
        core.limits.check(self.team, environment).admit(core)?;
        Ok(self.watcher(environment))
    }

    /// The same without being counted: for what a page that was counted asks for by itself, such as its small pictures
    /// and its news. Whoever serves those bounds them.
    pub fn watcher(&self, environment: Environment) -> Caller {
        Caller { team: self.team, environment, principal: Principal::Person(self.person) }
    }
}
