//! `/teams`

use std::sync::Arc;

use askama::Template;
use axum::extract::{Request, State};
use axum::response::Response;
use grabd_domain::accounts::Role;
use grabd_engine::accounts::{self, MyTeam, Session};
use http::StatusCode;

use super::{PATH, name_field};
use crate::Web;
use crate::form::{Complaint, Field, Form};
use crate::frame::{Client, see_other};
use crate::page::{Frame, page};
use crate::problem::Problem;
use crate::session::sign_in_first;

#[derive(Template)]
#[template(path = "teams.html")]
struct TeamsPage<'a> {
    frame: Frame,
    form_token: &'a str,
    has_left: bool,
    teams: Vec<Row>,
    name: Field,
    errors: &'a [Complaint],
}

/// A team as it is shown.
struct Row {
    id: String,
    name: String,
    /// What the person is in it.
    part: &'static str,
}

impl From<MyTeam> for Row {
    fn from(MyTeam { team, name, role }: MyTeam) -> Self {
        let part = match role {
            Role::Owner => "an owner",
            Role::Member => "a member",
        };
        Self { id: team.to_string(), name, part }
    }
}

/// The list.
pub(crate) async fn show(State(web): State<Arc<Web>>, client: Client, request: Request) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let Some(person) = web.signed_in(request.headers()).await? else { return Ok(see_other(&sign_in_first(PATH))) };
    let query = Form::parse(request.uri().query().unwrap_or_default().as_bytes());
    list(&web, &person.session, StatusCode::OK, query.has("left"), None, &[]).await
}

pub(super) async fn list(
    web: &Web,
    session: &Session,
    status: StatusCode,
    has_left: bool,
    sent: Option<&Form>,
    errors: &[Complaint],
) -> Result<Response, Problem> {
    let teams = accounts::list_teams(&web.core, session.person.id).await?;
    let template = TeamsPage {
        frame: web.frame_of(session, PATH),
        form_token: &session.csrf,
        has_left,
        teams: teams.into_iter().map(Row::from).collect(),
        name: name_field("Name of the new team", "", sent, errors),
        errors,
    };
    Ok(page(status, &template))
}
