//! `/teams/{team}/delete`: deletes a team, after its owner has typed its name and their password.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use grabd_engine::accounts::{self, DeletionError, Session, UserTeam};
use http::header::RETRY_AFTER;
use http::{HeaderValue, StatusCode};

use crate::extract::{MyTeamForm, MyTeamPage, PasswordLimit};
use crate::fields::{name_field, password_error, password_field};
use crate::form::{Field, FieldError, Form};
use crate::page::{Layout, page};
use crate::paths::{self, TEAMS};
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;

#[derive(Template)]
#[template(path = "team_delete.html")]
struct DeleteTeamPage<'a> {
    layout: Layout,
    form_token: &'a str,
    team_name: &'a str,
    path: String,
    back: String,
    name: Field,
    password: Field,
    errors: &'a [FieldError],
}

/// Asks for confirmation.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    MyTeamPage { user, team }: MyTeamPage,
) -> Result<Response, Problem> {
    render(&web, &user.session, &team, StatusCode::OK, None, &[]).await
}

/// Deletes the team. Each attempt costs a slow hash, so the sign-in limit applies.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    MyTeamForm { user, team, form, .. }: MyTeamForm<PasswordLimit>,
) -> Result<Response, Problem> {
    let (me, name, password) = (&user.session.user, form.get("name"), form.get("password"));
    let deleted = accounts::delete_team(&web.core, me, &user.token, team.team, name, password).await;
    let (error, retry_after_s) = match deleted {
        Ok(()) => return Ok(see_other(&format!("{TEAMS}?deleted"))),
        Err(DeletionError::WrongName) => {
            let message = "Enter the name of the team exactly as above.".to_owned();
            (FieldError { field: "name", message }, None)
        }
        Err(DeletionError::Password(error)) => password_error(error)?,
        Err(DeletionError::Team(error)) => return Err(error.into()),
        Err(error @ DeletionError::OnlyOwner { .. }) => {
            return Err(Problem::conflict("A team needs an owner", error.to_string(), ""));
        }
        Err(DeletionError::Internal(error)) => return Err(error.into()),
    };
    let status = match retry_after_s {
        Some(_) => StatusCode::TOO_MANY_REQUESTS,
        None => StatusCode::UNPROCESSABLE_ENTITY,
    };
    let mut response = render(&web, &user.session, &team, status, Some(&form), &[error]).await?;
    if let Some(seconds) = retry_after_s {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    Ok(response)
}

async fn render(
    web: &Web,
    session: &Session,
    team: &UserTeam,
    status: StatusCode,
    input: Option<&Form>,
    errors: &[FieldError],
) -> Result<Response, Problem> {
    let template = DeleteTeamPage {
        layout: web.team_admin_layout(session, team.team, "settings").await?,
        form_token: &session.csrf,
        team_name: &team.name,
        path: paths::team(team.team),
        back: paths::settings(team.team),
        name: name_field("Team name", "Type the name of the team to confirm.", input, errors),
        password: password_field("current-password", "", errors),
        errors,
    };
    Ok(page(status, &template))
}
