//! Access to the pages of a team, and the team navigation. All pages of a team are below `/teams/{team}/`.
//!
//! To add a page to the navigation, add a line in [`PAGES`].

use grabd_domain::ids::TeamId;
use grabd_engine::accounts::{self, Session, TeamError, TeamMember, UserTeam};
use http::HeaderMap;

use crate::page::{Layout, Tab, Tabs, TeamNavigation};
use crate::paths;
use crate::problem::Problem;
use crate::session::SignedIn;
use crate::state::Web;

/// The pages of a team in the order of the navigation: last path segment and label.
const PAGES: [(&str, &str); 8] = [
    ("grabs", "Captures"),
    ("capture", "New capture"),
    ("keys", "API keys"),
    ("webhooks", "Webhooks"),
    ("requests", "Requests"),
    ("billing", "Usage and billing"),
    ("people", "Members"),
    ("settings", "Settings"),
];

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
    /// When the team does not exist or the user is not in it. Both give the same error.
    pub(crate) async fn team_context(&self, headers: &HeaderMap, team: &str) -> Result<Option<TeamContext>, Problem> {
        let Some(signed_in) = self.signed_in(headers).await? else { return Ok(None) };
        let unknown = || Problem::not_found("This team does not exist, or you are not a member of it.");
        let team: TeamId = team.parse().map_err(|_| unknown())?;
        match accounts::find_team_member(&self.core, signed_in.session.user.id, team).await? {
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
    /// Not found, if the team does not exist or the user is not in it.
    pub(crate) async fn my_team(&self, session: &Session, team: &str) -> Result<UserTeam, Problem> {
        let Ok(team) = team.parse() else { return Err(Problem::not_found(UNKNOWN)) };
        match accounts::find_team(&self.core, session.user.id, team).await {
            Err(TeamError::NotMember) => {
                let suspended = self.suspended(session, team).await?;
                Err(suspended.unwrap_or_else(|| TeamError::NotMember.into()))
            }
            found => Ok(found?),
        }
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
        let TeamMember { team, team_name, others, .. } = team_member;
        let tab = |(page, label)| Tab { path: paths::team_page(*team, page), label, is_here: page == here };
        let links = PAGES.into_iter().map(tab).collect();
        // Links to other teams lead to the same page there.
        let page = if here.is_empty() { "grabs" } else { here };
        let others = others.iter().map(|(team, name)| (paths::team_page(*team, page), name.clone()));
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
}

impl From<TeamError> for Problem {
    fn from(error: TeamError) -> Self {
        match error {
            TeamError::NotMember | TeamError::NotFound => Self::not_found(UNKNOWN),
            TeamError::Unverified => Self::unverified(),
            TeamError::NotOwner => Self::not_allowed(
                "Owners only",
                "Only owners of this team can manage members, see the audit trail, and rename, export or delete the team.",
                "Nothing was changed. The team’s page lists its owners.",
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
