//! `/operator/teams`: all teams, newest first, with a search.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::response::Response;
use grabd_engine::operator::{self, TeamCursor, TeamRow};
use http::StatusCode;

use super::cursor;
use super::navigation::TEAMS;
use crate::extract::OperatorContext;
use crate::form::Form;
use crate::number::grouped;
use crate::page::{Layout, page};
use crate::problem::Problem;
use crate::state::Web;
use crate::time_format::Moment;

/// The query parameter of the search.
const SEARCH: &str = "q";

#[derive(Template)]
#[template(path = "operator_teams.html")]
struct TeamsPage<'a> {
    layout: Layout,
    search: &'a str,
    teams: Vec<Team>,
    newest: Option<String>,
    older: Option<String>,
}

/// A team in the table.
struct Team {
    path: String,
    name: String,
    is_active: bool,
    created: Moment,
    members: String,
    live: String,
    held: String,
    captures: String,
}

impl From<TeamRow> for Team {
    fn from(row: TeamRow) -> Self {
        let TeamRow { team, members, balance, captures } = row;
        Self {
            path: format!("{TEAMS}/{}", team.id),
            name: team.name,
            is_active: team.status == "active",
            created: team.created_at.into(),
            members: grouped(members),
            live: grouped(balance.total()),
            held: grouped(balance.held),
            captures: grouped(captures),
        }
    }
}

/// Shows the list.
pub(super) async fn show(
    State(web): State<Arc<Web>>,
    at: OperatorContext,
    request: Request,
) -> Result<Response, Problem> {
    let query = Form::parse(request.uri().query().unwrap_or_default().as_bytes());
    let after = cursor::from_query(&query)?.map(|(created_at, team)| TeamCursor { created_at, team });
    let search = query.get(SEARCH);
    let operator::TeamsPage { teams, next } = operator::list_teams(&web.core, &at.operator, search, after).await?;
    let link = |after: Option<TeamCursor>| {
        let after = after.map(|TeamCursor { created_at, team }| cursor::format(created_at, team));
        cursor::list_path(TEAMS, (SEARCH, search), after.as_deref())
    };
    let template = TeamsPage {
        layout: at.layout(&web, TEAMS),
        search,
        teams: teams.into_iter().map(Team::from).collect(),
        newest: after.map(|_| link(None)),
        older: next.map(|next| link(Some(next))),
    };
    Ok(page(StatusCode::OK, &template))
}
