//! Who is at a page of a team, and the way to the team's other pages: all of them lie below `/teams/{team}/`.
//!
//! To add a page to the navigation of a team, give it a line in [`PAGES`].

use grabd_domain::ids::TeamId;
use grabd_engine::accounts::{self, Insider, Session, TeamError};
use http::HeaderMap;

use crate::Web;
use crate::page::{Frame, TeamLink, TeamNavigation};
use crate::problem::Problem;
use crate::session::SignedIn;
use crate::teams;

/// The pages of a team in the order of the navigation: the last part of the path, and what people call it.
const PAGES: [(&str, &str); 6] = [
    ("grabs", "All captures"),
    ("capture", "Capture a page"),
    ("billing", "Usage and billing"),
    ("keys", "Keys"),
    ("webhooks", "Webhooks"),
    ("people", "People"),
];

/// Somebody who is signed in, in one of their teams.
pub(crate) struct AtTeam {
    pub(crate) signed_in: SignedIn,
    pub(crate) insider: Insider,
}

impl Web {
    /// Who asks for a page of this team; `None` when nobody is signed in.
    ///
    /// # Errors
    /// When there is no such team, or they are not in it: the two cannot be told apart.
    pub(crate) async fn at_team(&self, headers: &HeaderMap, team: &str) -> Result<Option<AtTeam>, Problem> {
        let Some(signed_in) = self.signed_in(headers).await? else { return Ok(None) };
        let unknown = || Problem::not_found("There is no such team, or you are not in it.");
        let team: TeamId = team.parse().map_err(|_| unknown())?;
        let insider = accounts::find_insider(&self.core, signed_in.session.person.id, team).await?;
        Ok(Some(AtTeam { signed_in, insider: insider.ok_or_else(unknown)? }))
    }

    /// A frame with the navigation of a team. `here` is the page's last part of the path, or empty.
    pub(crate) fn team_frame(&self, at: &AtTeam, here: &str) -> Frame {
        let team = navigation(&at.insider, here);
        Frame { team: Some(team), ..self.frame_of(&at.signed_in.session, "") }
    }

    /// The same for the pages about the team itself, which belong to the teams in the navigation above.
    ///
    /// # Errors
    /// As [`Web::at_team`].
    pub(crate) async fn frame_about_team(&self, session: &Session, team: TeamId, here: &str) -> Result<Frame, Problem> {
        let insider = accounts::find_insider(&self.core, session.person.id, team).await?;
        let team = navigation(&insider.ok_or(TeamError::NotIn)?, here);
        Ok(Frame { team: Some(team), ..self.frame_of(session, teams::PATH) })
    }
}

fn navigation(insider: &Insider, here: &str) -> TeamNavigation {
    let link = |(page, label)| TeamLink { path: path(insider.team, page), label, is_here: page == here };
    // The same page of another team, where there is one for every team.
    let page = if here.is_empty() { "grabs" } else { here };
    let others = insider.others.iter().map(|(team, name)| (path(*team, page), name.clone()));
    TeamNavigation {
        name: insider.team_name.clone(),
        links: PAGES.into_iter().map(link).collect(),
        others: others.collect(),
    }
}

impl AtTeam {
    /// The path of a page of this team.
    pub(crate) fn path(&self, page: &str) -> String {
        path(self.insider.team, page)
    }

    /// What forms of this session carry.
    pub(crate) fn form_token(&self) -> &str {
        &self.signed_in.session.csrf
    }
}

/// The path of a page of a team.
pub(crate) fn path(team: TeamId, page: &str) -> String {
    format!("/teams/{team}/{page}")
}
