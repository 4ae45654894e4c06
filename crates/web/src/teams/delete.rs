//! `/teams/{team}/delete`: deletes a team, after its owner has typed its name and their password.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use grabd_engine::accounts::{self, DeletionError, PasswordConfirmationError, Session, TeamError, UserTeam};
use http::header::RETRY_AFTER;
use http::{HeaderValue, StatusCode};

use super::{PATH, name_field, path, people_path};
use crate::Web;
use crate::accounts::password_field;
use crate::form::{Field, FieldError, Form};
use crate::page::{Layout, page};
use crate::problem::{Problem, wait};
use crate::response::{ClientIp, see_other};
use crate::session::sign_in_url;
use crate::submitted_form::SubmittedForm;

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
    client: ClientIp,
    Path(team): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    web.limits.pages.take(client.0)?;
    let Some(person) = web.signed_in(request.headers()).await? else {
        return Ok(see_other(&sign_in_url(request.uri().path())));
    };
    let team = web.my_team(&person.session, &team).await?;
    render(&web, &person.session, &team, StatusCode::OK, None, &[])
}

/// Deletes the team. Each attempt costs a slow hash, so the sign-in limit applies.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    client: ClientIp,
    Path(team): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let SubmittedForm { person, form } = web.submitted_form(&web.limits.sign_ins, client, request).await?;
    let team = web.my_team(&person.session, &team).await?;
    let (me, name, password) = (&person.session.person, form.get("name"), form.get("password"));
    let deleted = accounts::delete_team(&web.core, me, &person.token, team.team, name, password).await;
    let (error, retry_after_s) = match deleted {
        Ok(()) => return Ok(see_other(&format!("{PATH}?deleted"))),
        Err(DeletionError::WrongName) => {
            let message = "Enter the name of the team exactly as above.".to_owned();
            (FieldError { field: "name", message }, None)
        }
        Err(DeletionError::Password(error)) => password_error(error)?,
        Err(DeletionError::Team(error)) => return Err(error.into()),
        Err(error @ DeletionError::OnlyOwner { .. }) => {
            return Err(Problem::conflict("A team needs an owner", error.to_string(), ""));
        }
        Err(DeletionError::Internal(fault)) => return Err(fault.into()),
    };
    let status = match retry_after_s {
        Some(_) => StatusCode::TOO_MANY_REQUESTS,
        None => StatusCode::UNPROCESSABLE_ENTITY,
    };
    let mut response = render(&web, &person.session, &team, status, Some(&form), &[error])?;
    if let Some(seconds) = retry_after_s {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    Ok(response)
}

/// The error of a password that was not accepted, and the seconds to wait if there were too many.
///
/// # Errors
/// Internal errors.
pub(crate) fn password_error(error: PasswordConfirmationError) -> Result<(FieldError, Option<u64>), Problem> {
    let (message, retry_after_s) = match error {
        PasswordConfirmationError::Wrong => ("The password is wrong.".to_owned(), None),
        PasswordConfirmationError::TooMany { retry_after_s } => {
            let message = format!("Too many wrong passwords for your account. Try again in {}.", wait(retry_after_s));
            (message, Some(retry_after_s))
        }
        PasswordConfirmationError::Internal(fault) => return Err(fault.into()),
    };
    Ok((FieldError { field: "password", message }, retry_after_s))
}

fn render(
    web: &Web,
    session: &Session,
    team: &UserTeam,
    status: StatusCode,
    input: Option<&Form>,
    errors: &[FieldError],
) -> Result<Response, Problem> {
    if team.role != grabd_domain::accounts::Role::Owner {
        return Err(TeamError::NotOwner.into());
    }
    let template = DeleteTeamPage {
        layout: web.user_layout(session, PATH),
        form_token: &session.csrf,
        team_name: &team.name,
        path: path(team.team),
        back: people_path(team.team),
        name: name_field("Team name", "Type the name of the team to confirm.", input, errors),
        password: password_field("current-password", "", errors),
        errors,
    };
    Ok(page(status, &template))
}
