//! `/operator/teams`: all teams, the newest first, and those that a search finds.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::response::Response;
use grabd_engine::operator::{self, TeamPlace, TeamRow};
use http::StatusCode;

use super::place::{self, AFTER};
use super::{AtOperator, Link, navigation};
use crate::Web;
use crate::form::Form;
use crate::moment::Moment;
use crate::number::grouped;
use crate::page::{Frame, page};
use crate::problem::Problem;

const PATH: &str = "/operator/teams";
/// The field of a query that says what to search for.
const SEARCH: &str = "q";

#[derive(Template)]
#[template(path = "operator_teams.html")]
struct TeamsPage<'a> {
    frame: Frame,
    links: Vec<Link>,
    search: &'a str,
    teams: Vec<Team>,
    newest: Option<String>,
    older: Option<String>,
}

/// A team as a table shows it.
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
            path: format!("{PATH}/{}", team.id),
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

/// The list.
pub(super) async fn show(State(web): State<Arc<Web>>, at: AtOperator, request: Request) -> Result<Response, Problem> {
    let query = Form::parse(request.uri().query().unwrap_or_default().as_bytes());
    let after = place::read(&query)?.map(|(created_at, team)| TeamPlace { created_at, team });
    let search = query.one(SEARCH);
    let operator::TeamsPage { teams, next } = operator::list_teams(&web.core, &at.operator, search, after).await?;
    let link = |place: Option<TeamPlace>| {
        let place = place.map(|TeamPlace { created_at, team }| place::write(created_at, team));
        let mut query: Vec<(&str, &str)> = Vec::new();
        query.extend((!search.is_empty()).then_some((SEARCH, search)));
        query.extend(place.as_deref().map(|place| (AFTER, place)));
        let query = Form::from_iter(query).to_query();
        format!("{PATH}{}{query}", if query.is_empty() { "" } else { "?" })
    };
    let template = TeamsPage {
        frame: at.frame(&web),
        links: navigation(PATH),
        search,
        teams: teams.into_iter().map(Team::from).collect(),
        newest: after.map(|_| link(None)),
        older: next.map(|next| link(Some(next))),
    };
    Ok(page(StatusCode::OK, &template))
}
