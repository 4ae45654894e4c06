//! Access to the pages of a team, and the team navigation. All pages of a team are below `/teams/{team}/`.
//!
//! To add a page to the navigation, add a line in [`PAGES`], with the access that its route has.

use grabd_domain::accounts::Role;
use grabd_domain::ids::{TeamId, UserId};
use grabd_domain::permissions::Permission;
use grabd_engine::accounts::{self, Session, TeamError, TeamMember, UserTeam};
use http::HeaderMap;

use crate::access::{Access, role_name};
use crate::page::{Layout, Tab, Tabs, TeamNavigation};
use crate::paths;
use crate::problem::Problem;
use crate::session::SignedIn;
use crate::state::Web;

/// The pages of a team in the order of the navigation: last path segment, label, and the members who may use it.
const PAGES: [(&str, &str, Access); 10] = [
    ("grabs", "Captures", Access::With(Permission::ViewCaptures)),
    ("capture", "New capture", Access::With(Permission::Capture)),
    ("monitors", "Monitors", Access::With(Permission::ViewCaptures)),
    ("sites", "Sites", Access::With(Permission::ViewCaptures)),
    ("keys", "API keys", Access::With(Permission::ManageKeys)),
    ("webhooks", "Webhooks", Access::With(Permission::ManageWebhooks)),
    ("requests", "Requests", Access::With(Permission::ViewRequests)),
    ("billing", "Usage and billing", Access::With(Permission::ViewUsage)),
    ("people", "Members", Access::Members),
    ("settings", "Settings", Access::With(Permission::ManageTeam)),
];

/// How many owners an error page names.
const NAMED_OWNERS: usize = 10;

/// The last path segment of the first page of a team that a role may use.
pub(crate) fn first_page(role: Role) -> &'static str {
    PAGES.into_iter().find(|(_, _, access)| access.allows(role)).map_or("people", |(page, ..)| page)
}

/// The same page if the role may use it, or its first page.
fn page_of(role: Role, page: &str) -> &str {
    let is_allowed = PAGES.into_iter().any(|(own, _, access)| own == page && access.allows(role));
    if is_allowed { page } else { first_page(role) }
}

const UNKNOWN: &str = "This team does not exist, you are not a member of it, or the item no longer exists.";

/// A signed-in user in one of their teams.
pub(crate) struct TeamContext {
    pub(crate) signed_in: SignedIn,
    pub(crate) team_member: TeamMember,
    /// The origin of the service.
    pub(crate) public_url: String,
}

impl Web {
    /// The signed-in user in this team; `None` if the request has no session.
    ///
    /// # Errors
    /// When the team does not exist or the user is not in it. Both give the same error. When the role of the user does not
    /// have this access.
    pub(crate) async fn team_context(
        &self,
        headers: &HeaderMap,
        team: &str,
        access: Access,
    ) -> Result<Option<TeamContext>, Problem> {
        let Some(signed_in) = self.signed_in(headers).await? else { return Ok(None) };
        let unknown = || Problem::not_found("This team does not exist, or you are not a member of it.");
        let team: TeamId = team.parse().map_err(|_| unknown())?;
        match accounts::find_team_member(&self.core, signed_in.session.user.id, team).await? {
            Some(TeamMember { user, team, role, .. }) if !access.allows(role) => {
                Err(self.role_needed(user, team, role, access).await)
            }
            Some(team_member) => {
                let public_url = self.core.public_url().to_owned();
                Ok(Some(TeamContext { signed_in, team_member, public_url }))
            }
            None => Err(self.suspended(&signed_in.session, team).await?.unwrap_or_else(unknown)),
        }
    }

    /// The team that a path names.
    ///
    /// # Errors
    /// Not found, if the team does not exist or the user is not in it. When the role of the user does not have this access.
    pub(crate) async fn my_team(&self, session: &Session, team: &str, access: Access) -> Result<UserTeam, Problem> {
        let Ok(team) = team.parse() else { return Err(Problem::not_found(UNKNOWN)) };
        match accounts::find_team(&self.core, session.user.id, team).await {
            Err(TeamError::NotMember) => {
                let suspended = self.suspended(session, team).await?;
                Err(suspended.unwrap_or_else(|| TeamError::NotMember.into()))
            }
            Ok(UserTeam { team, role, .. }) if !access.allows(role) => {
                Err(self.role_needed(session.user.id, team, role, access).await)
            }
            found => Ok(found?),
        }
    }

    /// The error for members whose role does not have this access. It names the owners, who can change the role.
    async fn role_needed(&self, user: UserId, team: TeamId, own: Role, access: Access) -> Problem {
        let members = match accounts::list_members(&self.core, user, team).await {
            Ok(members) => members,
            Err(error) => return error.into(),
        };
        let owners = members.into_iter().filter(|member| member.role == Role::Owner).take(NAMED_OWNERS);
        let owners = owners.map(|owner| owner.email.to_string()).collect();
        Problem::role_needed(role_name(own), &access.role_names(), owners)
    }

    /// The error for a page of a suspended team of this user; `None` when the team is not one.
    ///
    /// # Errors
    /// When the database fails.
    pub(crate) async fn suspended(&self, session: &Session, team: TeamId) -> Result<Option<Problem>, Problem> {
        let suspended = accounts::list_suspended_teams(&self.core, session.user.id).await?;
        Ok(suspended.iter().any(|(id, _)| *id == team).then(Problem::team_suspended))
    }

    /// Whether this user, who is in no active team, is in a suspended one.
    ///
    /// # Errors
    /// When the database fails.
    pub(crate) async fn has_only_suspended_teams(&self, session: &Session) -> Result<bool, Problem> {
        Ok(!accounts::list_suspended_teams(&self.core, session.user.id).await?.is_empty())
    }

    /// A layout with the tabs of the team. `here` is the last path segment of the page, or empty.
    pub(crate) fn team_layout(&self, at: &TeamContext, here: &str) -> Layout {
        self.layout_of(&at.signed_in.session, &at.team_member, here)
    }

    /// The same for a user of whom only the session is known.
    ///
    /// # Errors
    /// As [`Web::team_context`].
    pub(crate) async fn team_admin_layout(
        &self,
        session: &Session,
        team: TeamId,
        here: &str,
    ) -> Result<Layout, Problem> {
        let team_member = accounts::find_team_member(&self.core, session.user.id, team).await?;
        Ok(self.layout_of(session, &team_member.ok_or(TeamError::NotMember)?, here))
    }

    fn layout_of(&self, session: &Session, team_member: &TeamMember, here: &str) -> Layout {
        let TeamMember { team, team_name, role, others, .. } = team_member;
        let allowed = PAGES.into_iter().filter(|(_, _, access)| access.allows(*role));
        let tab = |(page, label, _)| Tab { path: paths::team_page(*team, page), label, is_here: page == here };
        let links = allowed.map(tab).collect();
        // Links to other teams lead to the same page there, if the role in that team allows it.
        let other = |other: &UserTeam| (paths::team_page(other.team, page_of(other.role, here)), other.name.clone());
        let others = others.iter().map(other);
        Layout {
            team: Some(TeamNavigation { name: team_name.clone(), others: others.collect() }),
            tabs: Some(Tabs { label: format!("Team {team_name}"), links }),
            ..self.user_layout(session, "")
        }
    }
}

impl TeamContext {
    /// The path of a page of this team.
    pub(crate) fn path(&self, page: &str) -> String {
        paths::team_page(self.team_member.team, page)
    }

    /// The CSRF token for forms of this session.
    pub(crate) fn form_token(&self) -> &str {
        &self.signed_in.session.csrf
    }

    /// Whether the user's role in this team has a permission.
    pub(crate) const fn may(&self, permission: Permission) -> bool {
        self.team_member.role.allows(permission)
    }
}

impl From<TeamError> for Problem {
    fn from(error: TeamError) -> Self {
        match error {
            TeamError::NotMember | TeamError::NotFound => Self::not_found(UNKNOWN),
            TeamError::Unverified => Self::unverified(),
            // The extractors have checked the role of the request, so it has just changed.
            TeamError::NotOwner => Self::not_allowed(
                "Owners only",
                "Only owners of this team can manage members, see the audit trail, and rename, export or delete the team.",
                "Nothing was changed. The team’s page lists its owners.",
            ),
            TeamError::NotAllowed => Self::not_allowed(
                "Your role does not allow this",
                "Your role in this team does not allow this.",
                "Nothing was changed. The team’s page lists its owners, who can change your role.",
            ),
            TeamError::LastOwner => Self::conflict(
                "A team needs an owner",
                "You are the only owner. Without an owner, nobody could manage the team.",
                "Nothing was changed. Make another member an owner first.",
            ),
            TeamError::AlreadyMember => Self::conflict("Already a member", "Nothing was changed.", ""),
            TeamError::Full => Self::conflict(
                "Limit reached",
                "The maximum number has been reached.",
                "Nothing was changed. Remove what is no longer needed, or contact your administrator.",
            ),
            TeamError::Name(error) => Self::bad_request("Invalid name", format!("The name {error}."), ""),
            TeamError::TeamName(error) => Self::bad_request("Invalid name", format!("The name {error}."), ""),
            TeamError::Internal(error) => error.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_between_teams_lead_to_a_page_that_the_role_may_use() {
        for (role, here, expected) in [
            (Role::Owner, "keys", "keys"),
            (Role::Owner, "", "grabs"),
            (Role::Member, "settings", "grabs"),
            (Role::Viewer, "requests", "requests"),
            (Role::Viewer, "keys", "grabs"),
            (Role::Billing, "grabs", "billing"),
            (Role::Billing, "people", "people"),
        ] {
            assert_eq!(page_of(role, here), expected, "{role:?} {here}");
        }
    }
}
