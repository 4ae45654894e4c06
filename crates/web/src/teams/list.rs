//! `/teams`: the teams of a user.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use grabd_domain::permissions::Permission;
use grabd_engine::accounts::{self, Session, UserTeam};
use http::StatusCode;

use crate::access::role_name;
use crate::extract::{QueryForm, SignedInPage};
use crate::fields::name_field;
use crate::form::{Field, FieldError, Form};
use crate::page::{Layout, page};
use crate::paths;
use crate::problem::Problem;
use crate::state::Web;
use crate::team::first_page;

/// Notices, by the query parameter that shows them.
const NOTICES: [(&str, &str); 2] = [
    ("left", "You have left the team. Apps you connected to it no longer have access."),
    ("deleted", "Team deleted. Its captures and images are being erased."),
];

#[derive(Template)]
#[template(path = "teams.html")]
struct TeamsPage<'a> {
    layout: Layout,
    form_token: &'a str,
    notice: &'static str,
    teams: Vec<Row>,
    /// The names of suspended teams.
    suspended: Vec<String>,
    name: Field,
    errors: &'a [FieldError],
}

/// A team in the list.
struct Row {
    id: String,
    name: String,
    role: &'static str,
    /// The page to which the name links.
    page: String,
    /// The page of the keys. `None`: the user may not manage them.
    keys: Option<String>,
}

impl From<UserTeam> for Row {
    fn from(UserTeam { team, name, role }: UserTeam) -> Self {
        let keys = role.allows(Permission::ManageKeys).then(|| paths::team_page(team, "keys"));
        let page = paths::team_page(team, first_page(role));
        Self { id: team.to_string(), name, role: role_name(role), page, keys }
    }
}

/// Shows the list.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    SignedInPage(user): SignedInPage,
    QueryForm(query): QueryForm,
) -> Result<Response, Problem> {
    let notice = NOTICES.iter().find(|(word, _)| query.has(word)).map_or("", |(_, notice)| *notice);
    list(&web, &user.session, StatusCode::OK, notice, None, &[]).await
}

pub(super) async fn list(
    web: &Web,
    session: &Session,
    status: StatusCode,
    notice: &'static str,
    input: Option<&Form>,
    errors: &[FieldError],
) -> Result<Response, Problem> {
    let teams = accounts::list_teams(&web.core, session.user.id).await?;
    let suspended = accounts::list_suspended_teams(&web.core, session.user.id).await?;
    let template = TeamsPage {
        layout: web.user_layout(session, paths::TEAMS),
        form_token: &session.csrf,
        notice,
        teams: teams.into_iter().map(Row::from).collect(),
        suspended: suspended.into_iter().map(|(_, name)| name).collect(),
        name: name_field("Team name", "", input, errors),
        errors,
    };
    Ok(page(status, &template))
}
