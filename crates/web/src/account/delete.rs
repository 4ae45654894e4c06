//! `/account/delete`: deletes the user's account, after they have entered their password.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use grabd_engine::accounts::{self, DeletionError, Session};
use http::header::{RETRY_AFTER, SET_COOKIE};
use http::{HeaderValue, StatusCode};

use super::PATH;
use crate::cookies::Cookie;
use crate::extract::{PasswordLimit, SignedInForm, SignedInPage};
use crate::fields::{password_error, password_field};
use crate::form::{Field, FieldError};
use crate::page::{Layout, page};
use crate::paths::SIGN_IN;
use crate::problem::Problem;
use crate::response::see_other;
use crate::state::Web;

/// The path of the page.
pub(crate) const DELETE: &str = "/account/delete";

#[derive(Template)]
#[template(path = "account_delete.html")]
struct DeleteAccountPage<'a> {
    layout: Layout,
    form_token: &'a str,
    email: &'a str,
    action: &'static str,
    back: &'static str,
    password: Field,
    errors: &'a [FieldError],
}

/// Asks for confirmation.
pub(crate) async fn show(State(web): State<Arc<Web>>, SignedInPage(user): SignedInPage) -> Result<Response, Problem> {
    Ok(render(&web, &user.session, StatusCode::OK, &[]))
}

/// Deletes the account. Each attempt costs a slow hash, so the sign-in limit applies.
pub(crate) async fn submit(
    State(web): State<Arc<Web>>,
    SignedInForm { user, form, .. }: SignedInForm<PasswordLimit>,
) -> Result<Response, Problem> {
    let me = &user.session.user;
    let (error, retry_after_s) = match accounts::delete_account(&web.core, me, &user.token, form.get("password")).await
    {
        Ok(()) => {
            let mut response = see_other(&format!("{SIGN_IN}?deleted"));
            response.headers_mut().append(SET_COOKIE, web.cookies.remove(Cookie::Session));
            return Ok(response);
        }
        Err(DeletionError::Password(error)) => password_error(error)?,
        Err(DeletionError::OnlyOwner { teams }) => {
            let message = format!(
                "You are the only owner of these teams, which have other members: {}. Make another member an \
                     owner, or delete the team first.",
                teams.join(", ")
            );
            (FieldError { field: "", message }, None)
        }
        Err(DeletionError::Team(error)) => return Err(error.into()),
        Err(error @ DeletionError::WrongName) => {
            return Err(Problem::bad_request("Invalid name", error.to_string(), ""));
        }
        Err(DeletionError::Internal(error)) => return Err(error.into()),
    };
    let status = match retry_after_s {
        Some(_) => StatusCode::TOO_MANY_REQUESTS,
        None => StatusCode::UNPROCESSABLE_ENTITY,
    };
    let mut response = render(&web, &user.session, status, &[error]);
    if let Some(seconds) = retry_after_s {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    Ok(response)
}

fn render(web: &Web, session: &Session, status: StatusCode, errors: &[FieldError]) -> Response {
    let template = DeleteAccountPage {
        layout: web.user_layout(session, PATH),
        form_token: &session.csrf,
        email: session.user.email.as_str(),
        action: DELETE,
        back: PATH,
        password: password_field("current-password", "", errors),
        errors,
    };
    page(status, &template)
}
